"""INFO and STATUS of groups."""

from __future__ import annotations

from typing import Any

from ggshell.errors import GgsError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.group_results import GroupInfo, InfoGroups, ManagerStatus, SlotFacts, Status, StatusLine
from ggshell.shell.groups import ANY, ER, EXTRACT, PATH, REPLICAT, Kinds, View, group_lag, lag_note, select
from ggshell.shell.lag import since
from ggshell.shell.registry import command
from ggshell.shell.results import Note
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType, SourceType

_MANAGER = ("MANAGER", "MGR")
_ASK_SECONDS = 5.0


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
    """State, lag and positions of the groups of a name or wildcard; tasks only when asked for."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.shell.commands.manager import info_manager

        return info_manager(session)
    found, errors = select(session, kinds, group_name)
    if "*" in group_name:
        found = [each for each in found if _wanted(each, tasks=tasks, others=allprocesses or not tasks)]
    infos, notes = [], []
    for each in found:
        info, note = _info(session, each, detail=detail)
        infos.append(info)
        notes += [note] if note else []
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
    """The same of distribution paths."""
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
    """The state alone; tasks only when asked for."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.shell.commands.manager import info_manager

        return info_manager(session)
    found, errors = select(session, kinds, group_name)
    if errors:
        raise errors[0]
    if "*" in group_name:
        found = [each for each in found if _wanted(each, tasks=tasks, others=allprocesses or not tasks)]
    return Status(tuple(StatusLine(each.type, each.group, each.state) for each in found))


@command("STATUS DISTPATH", PATH)
def status_path(session: Session, kinds: Kinds, *, path_name: str) -> Status | ManagerStatus:
    """The state of distribution paths."""
    return status(session, kinds, group_name=path_name)


def _wanted(found: View, *, tasks: bool, others: bool) -> bool:
    return tasks if found.checkpoint.read.source is SourceType.TABLE else others


def _info(session: Session, found: View, *, detail: bool) -> tuple[GroupInfo, Note | None]:
    now = session.clock.now()
    lag = group_lag(session.home, found, now)
    info = GroupInfo(
        found.checkpoint,
        found.state,
        found.process.pid if found.runs and found.process else None,
        lag.value,
        since(found.checkpoint, now),
        _paths(session, found) if detail else {},
        slot_of(session, found) if detail else None,
        lag.error is None,
    )
    return info, lag_note(found, lag.error) if lag.error else None


def _paths(session: Session, found: View) -> dict[str, str]:
    home, group = session.home, found.group
    report = home.report(group)
    missing = "" if report.exists() else " (does not yet exist)"
    table = found.checkpoint.options.get("checkpoint_table")
    paths = {
        "Current directory": str(home.root),
        "Report file": f"{report}{missing}",
        "Parameter file": str(home.parameters(group)),
        "Checkpoint file": str(home.checkpoint(group, found.type)),
    }
    if table:
        paths["Checkpoint table"] = str(table)
    return {**paths, "Process file": str(home.process(group, found.type)), "Error log": str(home.event_log)}


def slot_facts(answer: Any) -> SlotFacts | None:
    """What a process says of its slot (its answer's ``slot``), None when it says nothing."""
    if not answer or not answer.get("name"):
        return None
    hours = answer.get("hours_left")
    left = None if hours is None else hours * 3600
    return SlotFacts(
        answer["name"],
        int(answer["retained"]),
        answer.get("growth_per_hour"),
        left,
        answer.get("room"),
        str(answer.get("limit", "")),
    )


def slot_of(session: Session, found: View) -> SlotFacts | None:
    """An Extract's slot: from its running process, else from the database when this session is logged in there, else as
    the last run saw it."""
    if found.type is not GroupType.EXTRACT or found.checkpoint.read.source is not SourceType.LOG:
        return None
    if not found.checkpoint.options.get("slot"):
        return None
    last = slot_facts(found.checkpoint.options.get("watch"))
    try:
        if found.runs:
            answer = request(supervision.process_of(found).socket, "STATUS", timeout=_ASK_SECONDS)
            return slot_facts(answer.get("slot")) or last
        if session.login is not None and not session.login.redo:
            return _ask_database(session, str(found.checkpoint.options.get("slot", ""))) or last
    except GgsError:
        return last
    return last


def _ask_database(session: Session, name: str) -> SlotFacts | None:
    from ggshell.databases.postgres.slot import slot_status

    status = slot_status(session.connection(), name)
    return (
        None
        if status is None
        else SlotFacts(
            status.name, status.retained, room=status.room, limit="max_slot_wal_keep_size" if status.room else ""
        )
    )
