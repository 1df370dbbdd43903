"""commands/execute: starts, stops and kills processes, reports on them, and purges trails."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from ggshell.cli.groups import ER, EXTRACT, PATH, REPLICAT, Kinds, View, matching, select
from ggshell.errors import GgsError, UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Said
from ggshell.service.bodies import Alias, Body, described
from ggshell.service.call import Call
from ggshell.service.command_reports import ReportItem, checkpoint_tables, lag_report, schemas, tables
from ggshell.service.group_facts import find_group
from ggshell.service.purging import Keep, TrailPattern, purge_trails
from ggshell.service.responses import Collection, Resource
from ggshell.service.routes import object_name, resource
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word
from ggshell.service.thresholds import Threshold

_KINDS: Final[dict[str, Kinds]] = {"extract": EXTRACT, "replicat": REPLICAT, "ER": ER, "distpath": PATH}
_COLLECTIONS: Final = {
    GroupKind.EXTRACT: "extracts",
    GroupKind.REPLICAT: "replicats",
    GroupKind.PATH: "sources",
    GroupKind.RECVPATH: "targets",
}
"""Where the groups of a kind have their addresses."""


class Command(Body, kw_only=True):
    """A command; which fields it has depends on its name and on the type of its report.

    ``at`` and ``after``: a CSN, or an object with a CSN.
    """

    name: Literal["start", "stop", "kill", "restart", "report", "purge"]
    process_name: Annotated[str | None, described("A name, or a pattern with *.")] = None
    process_type: Literal["extract", "replicat", "ER", "distpath"] = "ER"
    force: bool = False
    at: Annotated[Any, described("start: the CSN of the first transaction.")] = None
    after: Annotated[Any, described("start: the CSN after which processing begins.")] = None
    skip_transaction: bool = False
    filter_duplicates: bool = True
    report_type: (
        Annotated[str, described("report: its subject.", "lag", "checkpointTables", "schemas", "tables")] | None
    ) = None
    thresholds: list[Threshold] | None = None
    specification: str = "*"
    credentials: Alias | None = None
    purge_type: Annotated[str, described("purge: what it deletes.", "trails")] | None = None
    trails: list[TrailPattern] | None = None
    use_checkpoints: bool = True
    keep: list[Keep] | None = None


class CommandResult(Resource, tag="ogg:commandResult", kw_only=True):
    """What a command did: the groups that it changed, or the files that it deleted."""

    name: str
    processes: list[str] | None = None
    purged: list[str] | None = None


def _changed(body: Command, home: Home) -> tuple[str, ...]:
    """Return what a command changes: the groups that its name matches; a report changes nothing."""
    if body.name == "report":
        return ()
    if body.name == "purge":
        return (object_name("trails", ""),)
    kinds, pattern = _KINDS[body.process_type], body.process_name or ""
    return tuple(object_name(_COLLECTIONS[kind], name) for name, kind in matching(home, kinds, pattern))


@resource(
    "POST",
    "/commands/execute",
    role=Role.USER,
    summary="Start, stop, report on or purge",
    body=Command,
    changed=_changed,
    returns=CommandResult | Collection[ReportItem],
)
def execute_command(call: Call) -> Answer:
    """Carry out a command. Reports require the role User, processes Operator, purging Administrator."""
    body: Command = call.body
    if body.name == "report":
        return Answer(_report(call, body))
    if body.name == "purge":
        required(call.principal, Role.ADMINISTRATOR)
        return Answer(_purge(call, body))
    required(call.principal, Role.OPERATOR)
    return Answer(_processes(call, body))


def _processes(call: Call, body: Command) -> CommandResult:
    """Start, stop, kill or restart the groups that a name or wildcard selects; one that fails does not stop the others."""
    if not body.process_name:
        raise UsageError(f"{body.name} requires processName")
    options = _options(body)
    found, errors = select(call.session, _KINDS[body.process_type], body.process_name)
    for each in found:
        try:
            _change(call, body, each, options)
        except GgsError as error:
            errors.append(error)
    if errors and len(errors) >= len(found):
        raise errors[0]
    call.said += [Said.of(error, "ERROR") for error in errors]
    return CommandResult(name=body.name, processes=[each.group for each in found])


def _change(call: Call, body: Command, found: View, options: str) -> None:
    if body.name in ("stop", "restart"):
        group_changes.stop(call, found, forced=body.force)
    elif body.name == "kill":
        group_changes.stop(call, found, killed=True)
    if body.name in ("start", "restart"):
        group_changes.start(call, find_group(call, (found.type,), found.group), _for(found, options))


def _for(found: View, options: str) -> str:
    """Refuse options that the kind of group does not have. Raises UsageError."""
    if options and found.type.is_path:
        raise UsageError(f"a start position does not apply to {found.name}", hint="set begin with PATCH sources")
    if ("SKIPTRANSACTION" in options or "DUPTRANSACTIONS" in options) and found.type is GroupKind.EXTRACT:
        raise UsageError(f"skipTransaction and filterDuplicates do not apply to {found.name}")
    return options


def _options(body: Command) -> str:
    """Return the options of START."""
    places = {"ATCSN": body.at, "AFTERCSN": body.after}
    options = "".join(f", {name} {word(_csn(value))}" for name, value in places.items() if value is not None)
    options += ", SKIPTRANSACTION" if body.skip_transaction else ""
    return options + ("" if body.filter_duplicates else ", NOFILTERDUPTRANSACTIONS")


def _csn(value: Any) -> str:
    """Return a CSN from a number, a text, or an object with one. Raises UsageError."""
    found = value.get("csn") if isinstance(value, dict) else value
    if isinstance(found, bool) or not isinstance(found, int | str) or not str(found):
        raise UsageError(f"{str(value)[:80]} is not a valid CSN")
    return str(found)


def _report(call: Call, body: Command) -> Collection[ReportItem]:
    if body.report_type == "lag":
        return lag_report(call, body.thresholds or [])
    connected = {"checkpointTables": checkpoint_tables, "schemas": schemas, "tables": tables}
    report = connected.get(body.report_type or "")
    if report is None:
        names = ", ".join(["lag", *connected])
        wrong = (
            "report requires reportType" if body.report_type is None else f"{body.report_type[:80]} is not supported"
        )
        raise UsageError(wrong, hint=f"use one of these values of reportType: {names}")
    if body.credentials is None:
        raise UsageError(f"the report {body.report_type} requires credentials")
    return report(call, body.credentials.connection, body.specification)


def _purge(call: Call, body: Command) -> CommandResult:
    if body.purge_type is None:
        raise UsageError("purge requires purgeType", hint='add "purgeType": "trails"')
    if body.purge_type != "trails":
        raise UsageError(f"{body.purge_type[:80]} is not a supported purgeType", hint="use trails")
    removed = purge_trails(call, body.trails or [], body.keep or [], use_checkpoints=body.use_checkpoints)
    return CommandResult(name=body.name, purged=removed)
