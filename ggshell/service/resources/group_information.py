"""What Extracts and Replicats report: status, checkpoints, history, reports, logs and diagnostics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ggshell.cli.groups import EXTRACT, REPLICAT, Kinds
from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, item
from ggshell.service.call import Call
from ggshell.service.group_facts import checkpoint_fields, find_group, report_files, status_fields
from ggshell.service.group_responses import ExtractCheckpoints, ExtractStatus, ReplicatCheckpoints, ReplicatStatus
from ggshell.service.long_files import PART_QUERY, requested_part
from ggshell.service.responses import Items, Resource, Response
from ggshell.service.routes import resource

_TYPES = ("checkpoints", "diagnostics", "history", "logs", "reports", "status")


class HistoryLine(Response):
    """A line of ggserr.log."""

    message: str


class GroupHistory(Resource, tag="ogg:erHistory"):
    """The newest lines of ggserr.log about a group, the newest last."""

    items: list[HistoryLine]


class ReportLines(Resource, tag="ogg:report"):
    """The lines of a report or discard file."""

    lines: list[str]


class LogLines(Resource, tag="ogg:log"):
    """The lines that a process wrote to its standard output and standard error."""

    lines: list[str]


_Part = Callable[[Call, Kinds, str, str], Answer]


def _types(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    find_group(call, kinds, name)
    return Answer(collection(item(call.url(base), each) for each in _TYPES))


def _status(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    found = find_group(call, kinds, name)
    return Answer((ExtractStatus if kinds is EXTRACT else ReplicatStatus)(**status_fields(call, found)))


def _checkpoints(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    found = find_group(call, kinds, name)
    return Answer((ExtractCheckpoints if kinds is EXTRACT else ReplicatCheckpoints)(**checkpoint_fields(found)))


def _history(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    """The lines of ggserr.log about a group, the newest last."""
    found = find_group(call, kinds, name)
    words = (f" {found.name} ", f" {found.group}.prm:", f" {found.group.lower()}.prm:")
    chosen: deque[str] = deque(maxlen=200)
    with suppress(FileNotFoundError), call.home.event_log.open(errors="replace") as lines:
        chosen.extend(line.rstrip("\n") for line in lines if any(each in line for each in words))
    return Answer(GroupHistory(items=[HistoryLine(message=line) for line in chosen]))


def _reports(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    found = find_group(call, kinds, name)
    return Answer(collection(item(call.url(base), each) for each in report_files(call, found.group)))


def _logs(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    found = find_group(call, kinds, name)
    names = [found.group] if call.home.output(found.group).exists() else []
    return Answer(collection(item(call.url(base), each) for each in names))


def _diagnostics(call: Call, kinds: Kinds, name: str, base: str) -> Answer:
    find_group(call, kinds, name)
    return Answer(collection(()))


def _declare(plural: str, kinds: Kinds) -> None:
    """Declare the routes of one kind of group."""
    base, word = f"/{plural}", plural[:-1]
    extracts = kinds is EXTRACT
    group = "an Extract" if extracts else "a Replicat"
    parts: dict[str, tuple[_Part, Any, str]] = {
        "info": (_types, Items, f"List the kinds of information about {group}"),
        "info/status": (
            _status,
            ExtractStatus if extracts else ReplicatStatus,
            f"Show the status and the lag of {group}",
        ),
        "info/checkpoints": (
            _checkpoints,
            ExtractCheckpoints if extracts else ReplicatCheckpoints,
            f"Show the checkpoints of {group}",
        ),
        "info/history": (_history, GroupHistory, f"Show the last events of {group}"),
        "info/reports": (_reports, Items, f"List the reports of {group}"),
        "info/logs": (_logs, Items, f"List the outputs of {group}"),
        "info/diagnostics": (_diagnostics, Items, f"List the diagnostics of {group}: always empty"),
    }
    for path, (part, returns, summary) in parts.items():

        @resource("GET", f"{base}/{{{word}}}/{path}", role=Role.USER, summary=summary, returns=returns)
        def handler(call: Call, name: str, part: _Part = part, path: str = path) -> Answer:
            return part(call, kinds, name, f"{base}/{name}/{path}")


_declare("extracts", EXTRACT)
_declare("replicats", REPLICAT)


def _report(call: Call, kinds: Kinds, group: str, report: str) -> Answer:
    """Return the lines of a report or discard file. Raises NotFoundError."""
    found = find_group(call, kinds, group)
    path = report_files(call, found.group).get(report)
    if path is None:
        raise NotFoundError(f"report {report} of {found.name} does not exist")
    call.require_shown(path)
    text = requested_part(call, path)
    return Answer(ReportLines(lines=text.splitlines()), text=text)


def _log(call: Call, kinds: Kinds, group: str, log: str) -> Answer:
    found = find_group(call, kinds, group)
    path = call.home.output(found.group)
    if log not in (found.group, "default") or not path.exists():
        raise NotFoundError(f"log {log} of {found.name} does not exist")
    call.require_shown(path)
    text = requested_part(call, path)
    return Answer(LogLines(lines=text.splitlines()), text=text)


@resource(
    "GET",
    "/extracts/{extract}/info/reports/{report}",
    role=Role.USER,
    summary="Show a report of an Extract",
    query=PART_QUERY,
    returns=ReportLines,
)
def get_extract_report(call: Call, extract: str, report: str) -> Answer:
    return _report(call, EXTRACT, extract, report)


@resource(
    "GET",
    "/replicats/{replicat}/info/reports/{report}",
    role=Role.USER,
    summary="Show a report of a Replicat",
    query=PART_QUERY,
    returns=ReportLines,
)
def get_replicat_report(call: Call, replicat: str, report: str) -> Answer:
    return _report(call, REPLICAT, replicat, report)


@resource(
    "GET",
    "/extracts/{extract}/info/logs/{log}",
    role=Role.ADMINISTRATOR,
    summary="Show the output of an Extract",
    query=PART_QUERY,
    returns=LogLines,
)
def get_extract_log(call: Call, extract: str, log: str) -> Answer:
    return _log(call, EXTRACT, extract, log)


@resource(
    "GET",
    "/replicats/{replicat}/info/logs/{log}",
    role=Role.ADMINISTRATOR,
    summary="Show the output of a Replicat",
    query=PART_QUERY,
    returns=LogLines,
)
def get_replicat_log(call: Call, replicat: str, log: str) -> Answer:
    return _log(call, REPLICAT, replicat, log)
