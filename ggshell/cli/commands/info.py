"""INFO and STATUS for groups."""

from __future__ import annotations

from typing import Any

from ggshell.cli import supervision
from ggshell.cli.asking import ask_together
from ggshell.cli.commands.alias_extract import passive_shown
from ggshell.cli.groups import (
    ANY,
    ER,
    EXTRACT,
    PATH,
    RECVPATH,
    REPLICAT,
    Kinds,
    View,
    clock_notes,
    group_lag,
    is_wildcard,
    lag_note,
    select,
    wait_notes,
)
from ggshell.cli.registry import command
from ggshell.cli.results import Note
from ggshell.cli.results.groups import GroupInfo, InfoGroups, ManagerStatus, Status, StatusLine
from ggshell.cli.session import Session
from ggshell.cli.start_position import beyond_note
from ggshell.connectors.registry import source_log
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import GroupKind, SourceType
from ggshell.home.maintenance import MaintenanceFiles
from ggshell.home.slot_facts import SlotFacts
from ggshell.monitoring.group_lag import since

_MANAGER = ("MANAGER", "MGR")
_ASK_SECONDS = 5.0
_TOTAL_SECONDS = 8.0
"""For all processes together."""


@command("INFO EXTRACT", EXTRACT)
@command("INFO REPLICAT", REPLICAT)
@command("INFO ER", ER)
@command("INFO", ANY)
def info_groups(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str = "*",
    detail: bool = False,
    showch: bool = False,
    tasks: bool = False,
    allprocesses: bool = False,
) -> InfoGroups | ManagerStatus:
    """Show state, lag and positions of groups. A wildcard includes tasks only with TASKS or ALLPROCESSES."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.cli.commands.manager import info_manager

        return info_manager(session)
    found, errors = select(session, kinds, group_name)
    if is_wildcard(group_name):
        found = [each for each in found if _wanted(each, tasks=tasks, every=allprocesses)]
    infos: list[GroupInfo] = []
    notes: list[Note] = []
    asked = [each for each in found if each.runs and (detail or each.is_connected)]
    answers = ask_together(asked, _asked, lambda _: None, _TOTAL_SECONDS)
    answer_of = {each.name: answer for each, answer in zip(asked, answers, strict=True)}
    for each in found:
        answer = answer_of.get(each.name)
        info, more = _info(session, each, answer, detail=detail)
        if each.checkpoint.options.alias_of and not is_wildcard(group_name) and _is_connected(answer):
            info = info._replace(passive=passive_shown(session, each))
        infos.append(info)
        notes += more
    return InfoGroups(tuple(infos), detail, showch, tuple(errors), tuple(notes))


@command("INFO DISTPATH", PATH)
@command("INFO DISTPATH ALL", PATH)
def info_path(
    session: Session,
    kinds: Kinds,
    *,
    path_name: str = "*",
    detail: bool = False,
    showch: bool = False,
    tasks: bool = False,
    allprocesses: bool = False,
) -> InfoGroups | ManagerStatus:
    """Show the same for distribution paths."""
    return info_groups(
        session, kinds, group_name=path_name, detail=detail, showch=showch, tasks=tasks, allprocesses=allprocesses
    )


@command("STATUS EXTRACT", EXTRACT)
@command("STATUS REPLICAT", REPLICAT)
@command("STATUS ER", ER)
@command("STATUS", ANY)
def status(
    session: Session, kinds: Kinds, *, group_name: str, tasks: bool = False, allprocesses: bool = False
) -> Status | ManagerStatus:
    """Show the state of groups only. A wildcard includes tasks only with TASKS or ALLPROCESSES."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.cli.commands.manager import info_manager

        return info_manager(session)
    found, errors = select(session, kinds, group_name)
    if is_wildcard(group_name):
        found = [each for each in found if _wanted(each, tasks=tasks, every=allprocesses)]
    lines = (StatusLine(each.type, each.group, each.state, each.reason) for each in found)
    return Status(tuple(lines), tuple(errors))


@command("STATUS DISTPATH", PATH)
@command("STATUS RECVPATH", RECVPATH)
def status_path(session: Session, kinds: Kinds, *, path_name: str) -> Status | ManagerStatus:
    """Show the state of distribution paths."""
    return status(session, kinds, group_name=path_name)


def _wanted(found: View, *, tasks: bool, every: bool) -> bool:
    """Whether a wildcard shows a group: only tasks (TASKS), no tasks (default), or every group (ALLPROCESSES)."""
    return every or tasks is found.checkpoint.is_task


def _info(
    session: Session, found: View, answer: dict[str, Any] | None, *, detail: bool
) -> tuple[GroupInfo, tuple[Note, ...]]:
    now = session.clock.now()
    lag = group_lag(session.home, found, now)
    info = GroupInfo(
        found.checkpoint,
        found.state,
        found.process.pid if found.runs and found.process else None,
        lag.value,
        since(found.checkpoint, now, found.ahead),
        _paths(session, found) if detail else {},
        slot_of(session, found, answer) if detail else found.checkpoint.options.watch,
        lag.error is None,
        tuple((answer or {}).get("obstacles") or ()),
        _connection(answer) if found.is_connected else {},
        found.reason,
        MaintenanceFiles(session.home.root, found.group).result() if found.checkpoint.options.target else None,
    )
    waits = () if info.obstacles else wait_notes(found)
    unknown = (lag_note(found, lag.error),) if lag.error else ()
    return info, waits + unknown + clock_notes(found) + beyond_note(session, found)


def _paths(session: Session, found: View) -> dict[str, str]:
    home, group = session.home, found.group
    report = home.report(group)
    missing = "" if report.exists() else " (does not yet exist)"
    table = found.checkpoint.options.checkpoint_table
    paths = {
        "Current directory": str(home.root),
        "Report file": f"{report}{missing}",
        "Parameter file": str(home.parameters(group)),
        "Checkpoint file": str(home.checkpoint(group, found.type)),
    }
    if table:
        paths["Checkpoint table"] = table
    return {**paths, "Process file": str(home.process(group, found.type)), "Error log": str(home.event_log)}


def _asked(found: View) -> dict[str, Any] | None:
    """The STATUS answer of a running process; None if it does not answer."""
    try:
        return request(supervision.process_of(found).socket, "STATUS", timeout=_ASK_SECONDS)
    except GgsError:
        return None


def _is_connected(answer: dict[str, Any] | None) -> bool:
    return bool(answer and (answer.get("connection") or {}).get("connected"))


def _connection(answer: dict[str, Any] | None) -> dict[str, Any]:
    """What the answer to STATUS says about the connection to receivers."""
    return {name: answer[name] for name in ("connection", "receivers", "sources") if name in answer} if answer else {}


def slot_of(session: Session, found: View, answer: dict[str, Any] | None) -> SlotFacts | None:
    """Return the facts about an Extract's slot.

    They come from the running process, else from the database if this session is logged in there, else from what the
    last run saw.
    """
    if found.type is not GroupKind.EXTRACT or found.checkpoint.read.source is not SourceType.LOG:
        return None
    last = found.checkpoint.options.watch
    if found.runs:
        return SlotFacts.of((answer or {}).get("slot")) or last
    try:
        return source_log(found.checkpoint.options).slot(session.login, found.checkpoint) or last
    except GgsError:
        return last
