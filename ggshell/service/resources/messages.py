"""The messages of ggserr.log, also in the form of the Performance Metrics Service, with the changes of status they report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection
from ggshell.service.call import Call
from ggshell.service.event_lines import EVENT_QUERY, LoggedEvent, Wanted, events, wanted
from ggshell.service.refusals import not_here
from ggshell.service.resources.logs import Event, event_fields, text_of_log
from ggshell.service.responses import Items, Resource, Response, Severity
from ggshell.service.routes import resource

_BASE: Final = "/monitoring"
_MANAGER: Final = "MGR"


class Messages(Resource, tag="ogg:messages"):
    """The messages of ggserr.log."""

    messages: list[Event]


class ProcessMessage(Response):
    """A message of a process. ``identifier``: its number in ggserr.log."""

    identifier: int
    process: str
    issued: str
    code: str
    severity: Severity
    text: str


class ProcessMessages(Resource, tag="monitoring:messages"):
    """The messages of the processes."""

    messages: list[ProcessMessage]


class StatusChange(Response):
    """A change of the status of a process. ``identifier``: the number of the message that reports it."""

    identifier: int
    process: str
    date: str
    status: str


class StatusChanges(Resource, tag="monitoring:statusChanges"):
    """How the status of the processes changed."""

    status_change: list[StatusChange]


class LastMessage(Resource, tag="monitoring:lastMessageId"):
    """The number of the newest message, 0 if there is none."""

    identifier: int


class LastStatusChange(Resource, tag="monitoring:lastStatusChangeId"):
    """The number of the newest message about a status, 0 if there is none."""

    identifier: int


@resource(
    "GET", "/messages", role=Role.USER, summary="Show the messages of ggserr.log", query=EVENT_QUERY, returns=Messages
)
def list_messages(call: Call) -> Answer:
    found = events(call.home, wanted(call.request.query))
    fields = [event_fields(call, event) for event in found]
    return Answer(Messages(messages=fields), text=text_of_log(call))


@resource(
    "GET",
    f"{_BASE}/messages",
    role=Role.USER,
    summary="Show the messages of the processes",
    query=EVENT_QUERY,
    returns=ProcessMessages,
)
def list_process_messages(call: Call) -> Answer:
    return _messages(call, lambda _: True)


@resource(
    "GET",
    f"{_BASE}/{{item}}/messages",
    role=Role.USER,
    summary="Show the messages of a process",
    query=EVENT_QUERY,
    returns=ProcessMessages,
)
def list_messages_of(call: Call, process: str) -> Answer:
    name = _existing(call, process)
    return _messages(call, lambda event: event.process == name)


@resource(
    "GET",
    f"{_BASE}/statusChanges",
    role=Role.USER,
    summary="Show how the status of the processes changed",
    query=EVENT_QUERY,
    returns=StatusChanges,
)
def list_status_changes(call: Call) -> Answer:
    return _changes(call, lambda event: event.change is not None)


@resource(
    "GET",
    f"{_BASE}/{{item}}/statusChanges",
    role=Role.USER,
    summary="Show how the status of a process changed",
    query=EVENT_QUERY,
    returns=StatusChanges,
)
def list_status_changes_of(call: Call, process: str) -> Answer:
    name = _existing(call, process)
    return _changes(call, lambda event: event.change is not None and event.change[0] == name)


@resource(
    "GET",
    f"{_BASE}/lastMessageId",
    role=Role.USER,
    summary="Show the number of the newest message",
    returns=LastMessage,
)
def get_last_message(call: Call) -> Answer:
    return Answer(LastMessage(identifier=_last(call, lambda _: True)))


@resource(
    "GET",
    f"{_BASE}/lastStatusChangeId",
    role=Role.USER,
    summary="Show the number of the newest status change",
    returns=LastStatusChange,
)
def get_last_status_change(call: Call) -> Answer:
    return Answer(LastStatusChange(identifier=_last(call, lambda event: event.change is not None)))


@resource(
    "GET", f"{_BASE}/commands", role=Role.USER, summary="List the commands for the performance data", returns=Items
)
def list_commands(call: Call) -> Answer:
    return Answer(collection(()))


@resource(
    "POST", f"{_BASE}/commands/execute", role=Role.OPERATOR, summary="Not supported", body=dict[str, Any], optional=True
)
def execute_command(call: Call) -> Answer:
    raise not_here(
        "a datastore for performance data", "use /metrics with Prometheus; PURGE and LAGARCHIVE limit what is kept"
    )


def _messages(call: Call, fits: Callable[[LoggedEvent], bool]) -> Answer:
    found = events(call.home, wanted(call.request.query), fits)
    return Answer(ProcessMessages(messages=[_message(event) for event in found]))


def _message(event: LoggedEvent) -> ProcessMessage:
    return ProcessMessage(
        identifier=event.number,
        process=event.process,
        issued=event.issued,
        code=event.code,
        severity=event.severity,
        text=event.text,
    )


def _changes(call: Call, fits: Callable[[LoggedEvent], bool]) -> Answer:
    found = events(call.home, wanted(call.request.query), fits)
    return Answer(StatusChanges(status_change=[_change(event) for event in found]))


def _change(event: LoggedEvent) -> StatusChange:
    process, status = event.change or (event.process, "")
    return StatusChange(identifier=event.number, process=process, date=event.issued, status=status)


def _last(call: Call, fits: Callable[[LoggedEvent], bool]) -> int:
    """Return the number of the newest event that fits, 0 if there is none."""
    found = events(call.home, Wanted(limit=1), fits)
    return found[-1].number if found else 0


def _existing(call: Call, name: str) -> str:
    """Return the name of a process in upper case. Raises NotFoundError if no group and no server has it."""
    wanted_name = name.upper()
    if wanted_name not in {_MANAGER, "SERVICE", *(group for group, _ in call.home.group_names())}:
        raise NotFoundError(f"process {name} does not exist")
    return wanted_name
