"""The logs of the service: ggserr.log (``events``) and the report of the service (``default``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ggshell.errors import NotFoundError, UsageError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, item
from ggshell.service.call import Call
from ggshell.service.event_lines import EVENT_QUERY, LoggedEvent, events, wanted
from ggshell.service.installation import services_of
from ggshell.service.long_files import PART_QUERY, requested_part, shown_part
from ggshell.service.responses import Items, Message, Resource
from ggshell.service.routes import resource

_EVENTS: Final = "events"
_DEFAULT: Final = "default"
_SERVICES: Final = "/deployments/{deployment}/services/{service}/logs"


class Event(Message, tag="ogg:message"):
    """An event of ggserr.log. ``program``: the program that wrote it."""

    program: str


class LogFacts(Resource, tag="ogg:log"):
    """A log."""

    enabled: bool
    data_exists: bool


class EventItems(LogFacts, tag="ogg:log"):
    """The events of ggserr.log."""

    items: list[Event]


class ServiceLog(LogFacts, tag="ogg:log"):
    """The lines of the report of the service."""

    lines: list[str]


@resource("GET", "/logs", role=Role.USER, summary="List the logs", returns=Items)
def list_logs(call: Call) -> Answer:
    return Answer(collection(item(call.url("/logs"), name) for name in (_DEFAULT, _EVENTS)))


@resource(
    "GET", "/logs/events", role=Role.ADMINISTRATOR, summary="Show ggserr.log", query=EVENT_QUERY, returns=EventItems
)
def list_events(call: Call) -> Answer:
    """Show the same events as ``messages``, which every user may read: the vendor's API requires Administrator here."""
    found = events(call.home, wanted(call.request.query))
    items = [event_fields(call, event) for event in found]
    return Answer(EventItems(**_log_fields(call.home.event_log), items=items), text=text_of_log(call))


@resource(
    "GET",
    "/logs/{log}",
    role=Role.ADMINISTRATOR,
    summary="Show a log; as text/plain, its content",
    query=PART_QUERY,
    returns=ServiceLog,
)
def get_log(call: Call, name: str) -> Answer:
    _require(name)
    return _report(call)


@resource("PATCH", "/logs/{log}", role=Role.ADMINISTRATOR, summary="Change a log: not possible", body=dict[str, Any])
def update_log(call: Call, name: str) -> Answer:
    _require(name)
    if call.body.get("enabled") is not True:
        raise UsageError(f"log {name} cannot be changed", hint="it is always enabled")
    return Answer()


@resource("DELETE", "/logs/{log}", role=Role.ADMINISTRATOR, summary="Clear a log: not possible")
def delete_log(call: Call, name: str) -> Answer:
    _require(name)
    raise UsageError(f"log {name} cannot be cleared", hint="rotate ggserr.log with logrotate; old reports are kept")


@resource("GET", _SERVICES, role=Role.USER, summary="List the logs of a service", returns=Items)
def list_service_logs(call: Call, deployment: str, service: str) -> Answer:
    _require_service(call, deployment, service)
    base = call.url(_SERVICES.format(deployment=deployment, service=service))
    return Answer(collection([item(base, _DEFAULT)]))


@resource(
    "GET",
    f"{_SERVICES}/default",
    role=Role.ADMINISTRATOR,
    summary="Show the log of a service",
    query=PART_QUERY,
    returns=ServiceLog,
)
def get_service_log(call: Call, deployment: str, service: str) -> Answer:
    _require_service(call, deployment, service)
    return _report(call)


def event_fields(call: Call, event: LoggedEvent) -> Event:
    """Return an event of ggserr.log as a message of the API."""
    return Event(
        title=event.text,
        code=event.code,
        severity=event.severity,
        issued=event.issued,
        type=call.url(f"/oggerr/{event.code}"),
        program=event.program,
    )


def text_of_log(call: Call) -> str:
    """Return the newest lines of ggserr.log as text."""
    return shown_part(call.home.event_log) if call.request.plain and call.home.event_log.exists() else ""


def _report(call: Call) -> Answer:
    path = call.home.report("SERVICE")
    call.require_shown(path)
    text = requested_part(call, path) if path.exists() else ""
    return Answer(ServiceLog(**_log_fields(path), lines=text.splitlines()), text=text)


def _log_fields(path: Path) -> dict[str, bool]:
    """Return the fields of LogFacts."""
    return {"enabled": True, "data_exists": path.exists() and path.stat().st_size > 0}


def _require(name: str) -> None:
    if name not in (_DEFAULT, _EVENTS):
        raise NotFoundError(f"log {name} does not exist", hint="list the logs with GET logs")


def _require_service(call: Call, deployment: str, service: str) -> None:
    if service not in services_of(call.state.settings, deployment):
        raise NotFoundError(f"service {service} of deployment {deployment} does not exist")
