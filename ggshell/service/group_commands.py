"""Requests to the processes of groups: ``command``, as SEND, STATS and KILL send them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from ggshell.cli.execute import parse
from ggshell.cli.groups import Kinds, View
from ggshell.cli.outcome import Outcome
from ggshell.errors import HttpError
from ggshell.home.process_file import not_running
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Object
from ggshell.service.bodies import Body, described
from ggshell.service.call import Call, objects_of
from ggshell.service.group_facts import find_group
from ggshell.service.group_responses import CommandReply
from ggshell.service.permissions import require_permission
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word

_OWN_STATEMENTS: Final = frozenset({"KILL", "STATS"})
_READING: Final = frozenset(
    {"STATUS", "GETLAG", "STATS", "LOGEND", "SHOWTRANS", "CACHEMGR", "GETPARAMINFO", "GETPORTINFO", "BR"}
    | {"REPORTCOUNT", "CHILDSTATUS", "GETTCPSTATS", "LOGSTATS"}
)
_CHANGING: Final = frozenset(
    {"STOP", "FORCESTOP", "KILL", "RESUME", "ROLLOVER", "REPORT", "SKIPTRANS", "FORCETRANS"}
    | {"HANDLECOLLISIONS", "NOHANDLECOLLISIONS", "TRACE", "TRACE2", "TRACEINIT", "TRANLOGOPTIONS"}
)
_SUPPORTED: Final = sorted(_READING | _CHANGING)


class GroupCommand(Body):
    """The body of ``command``: a request to the process, as SEND sends it."""

    command: Annotated[str, described(f"The request, as in SEND: {', '.join(_SUPPORTED)}; in any case.")]
    arguments: Annotated[
        str, described("The options that follow the request in SEND, or the group in STATS: TOTAL, TABLE shop.*")
    ] = ""
    is_reported: bool = True


def send(call: Call, kinds: Kinds, name: str, body: GroupCommand) -> Answer:
    """Send a request to a group's process and return its reply: data, and the lines that GGSCI prints.

    It requires the role that the same statement requires. Raises HttpError (400, 403), StateError, StatementError.
    """
    found = find_group(call, kinds, name)
    verb = body.command.strip().upper()
    statement = _statement(call, found, verb, body.arguments.strip().strip(",").strip())
    if found.process is None or not found.runs:
        raise not_running(found.name, found.state)
    outcome = call.run(statement)
    return Answer(CommandReply(reply_data=_data(verb, outcome), reply=_lines(outcome)))


def _statement(call: Call, found: View, verb: str, arguments: str) -> str:
    """Return the statement that means the same as a command, after a check that the user may run it.

    Raises HttpError (400, 403), StatementError for arguments that the command does not have.
    """
    if verb in _CHANGING:
        required(call.principal, Role.OPERATOR)
    elif verb not in _READING:
        raise HttpError(
            400, f"{verb[:80]} is not a supported command", hint="see HELP SEND EXTRACT, HELP SEND REPLICAT"
        )
    group = f"{found.type} {word(found.group)}"
    if verb in _OWN_STATEMENTS:
        statement = f"{verb} {group}{', ' if arguments else ''}{arguments}"
    else:
        statement = f"SEND {group} {verb} {arguments}".strip()
    require_permission(call.principal, parse(statement), call.bounds)
    return statement


def _lines(outcome: Outcome) -> list[str]:
    """Return the lines of a statement's output in the layout of GGSCI."""
    return [] if outcome.result is None else [line for line in outcome.result.layout.splitlines() if line.strip()]


def _data(verb: str, outcome: Outcome) -> Object:
    """Return the result of a statement as data, in the shape of its command."""
    shape = _SHAPES.get(verb)
    return {"rows": objects_of(outcome.result)} if shape is None else shape(outcome.result)


def _status(result: Any) -> Object:
    return {"status": dict(result.groups[0].answer)}


def _lag(result: Any) -> Object:
    found = result.groups[0]
    return {"lag_seconds": None if found.lag is None else found.lag / 1_000_000, "at_eof": found.at_end}


def _log_end(result: Any) -> Object:
    return {"allRecordsProcessed": result.lines[-1] == "YES"}


def _statistics(result: Any) -> Object:
    """Return the counts of the sections that the arguments select."""
    found = result.groups[0]
    sections = result.sections
    tables = [
        {
            "source": each.source,
            "target": each.target,
            "counts": {name: dict(each.counts[name]) for name in sections},
            "conflicts": {name: dict(each.conflicts.get(name, {})) for name in sections},
        }
        for each in found.tables
    ]
    return {
        "now": found.now,
        "sections": {name: found.since[name] for name in sections},
        "tables": tables,
        "not_captured": dict(found.not_captured),
        "delivered": list(found.delivered),
    }


_SHAPES: Final = {"STATUS": _status, "GETLAG": _lag, "LOGEND": _log_end, "STATS": _statistics}
