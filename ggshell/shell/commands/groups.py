"""INFO of groups: ALL, EXTRACT, REPLICAT, DISTPATH, and of a group that is named without its kind."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ggshell.errors import GgsError, NotFoundError
from ggshell.process.state import ProcessState, state_of
from ggshell.shell import layout
from ggshell.shell.lag import checkpoint_lag, duration
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined
from ggshell.shell.session import Session
from ggshell.store.checkpoint import Checkpoint, GroupType, SourceType
from ggshell.store.home import GroupEntry

KIND_WORDS = {GroupType.EXTRACT: "EXTRACT", GroupType.REPLICAT: "REPLICAT", GroupType.PATH: "DISTPATH"}
ER = (GroupType.EXTRACT, GroupType.REPLICAT)


def find(session: Session, name: str, kinds: tuple[GroupType, ...]) -> list[GroupEntry]:
    """The groups that a name or pattern means.  Raises NotFoundError when there is none."""
    found = [entry for entry in session.home.groups() if entry.type in kinds and fnmatchcase(entry.group, name.upper())]
    if not found:
        what = " or ".join(KIND_WORDS[kind] for kind in kinds)
        if "*" in name:
            raise NotFoundError(f"No {what} groups exist that match {name}.")
        raise NotFoundError(f"{what} {name} does not exist.", hint="INFO ALL lists the groups")
    return found


def require(entry: GroupEntry) -> Checkpoint:
    """The group's checkpoint.  Raises the error with which it could not be read."""
    if entry.checkpoint is None:
        raise entry.error or NotFoundError(f"{entry.group} has no checkpoint")
    return entry.checkpoint


def waiting_since(session: Session, checkpoint: Checkpoint) -> int | None:
    """The commit time of the first record that waits in the group's source trail, None when none does."""
    from ggshell.trail import TrailName, read_position_time
    from ggshell.types import TrailPosition

    place = checkpoint.read.current
    name = TrailName.parse(checkpoint.read.trail, session.home.root)
    if not isinstance(place, TrailPosition) or not name.sequences():
        return None
    try:
        return read_position_time(name, place)
    except GgsError:
        return None


def lag_of(session: Session, entry: GroupEntry, state: ProcessState) -> int | None:
    """A group's lag in seconds."""
    checkpoint = require(entry)
    waits = None
    if checkpoint.read.source is SourceType.TRAIL and state is not ProcessState.RUNNING:
        waits = waiting_since(session, checkpoint)
    return checkpoint_lag(checkpoint, state, session.clock.now(), waits)


@command("INFO ALL", "INFO ALL TASKS", "INFO ALL ALLPROCESSES")
def info_all(session: Session) -> Result:
    manager, _ = state_of(session.home.manager)
    rows: list[tuple[str, str, str, str, str]] = [("MANAGER", manager.value, "", "", "")]
    now = session.clock.now()
    for entry in session.home.groups():
        state, _ = state_of(session.home.process(entry.group, entry.type))
        if entry.checkpoint is None:
            rows.append((KIND_WORDS[entry.type], "DAMAGED", entry.group, "00:00:00", "00:00:00"))
            continue
        lag = duration(lag_of(session, entry, state))
        since = duration(max(0, (now - (entry.checkpoint.updated or entry.checkpoint.created)) // 1_000_000))
        rows.append((KIND_WORDS[entry.type], state.value, entry.group, lag, since))
    return Result(layout.info_all(rows), layout.INFO_ALL_COLUMNS, tuple(rows))


def _info(session: Session, entries: list[GroupEntry], *, detail: bool, showch: bool) -> Result:
    results = []
    for entry in entries:
        checkpoint = require(entry)
        state, process = state_of(session.home.process(entry.group, entry.type))
        facts = layout.GroupFacts(
            entry,
            checkpoint,
            state,
            process.pid if process is not None else 0,
            lag_of(session, entry, state),
            session.clock.now(),
        )
        text = layout.info_group(session.home, facts, detail=detail, showch=showch)
        results.append(Result(text, layout.GROUP_COLUMNS, (layout.group_row(facts),)))
    return joined(results)


@command("INFO EXTRACT")
def info_extract(
    session: Session,
    *,
    group_name: str,
    detail: bool = False,
    showch: bool = False,
    tasks: bool = False,
    allprocesses: bool = False,
) -> Result:
    return _info(session, find(session, group_name, (GroupType.EXTRACT,)), detail=detail, showch=showch)


@command("INFO REPLICAT")
def info_replicat(
    session: Session,
    *,
    group_name: str,
    detail: bool = False,
    showch: bool = False,
    tasks: bool = False,
    allprocesses: bool = False,
) -> Result:
    return _info(session, find(session, group_name, (GroupType.REPLICAT,)), detail=detail, showch=showch)


@command("INFO DISTPATH")
def info_distpath(
    session: Session,
    *,
    path_name: str,
    detail: bool = False,
    showch: bool = False,
    tasks: bool = False,
    allprocesses: bool = False,
) -> Result:
    return _info(session, find(session, path_name, (GroupType.PATH,)), detail=detail, showch=showch)


@command("INFO ER", "INFO")
def info_any(session: Session, *, group_name: str, detail: bool = False, showch: bool = False) -> Result:
    return _info(session, find(session, group_name, tuple(GroupType)), detail=detail, showch=showch)


def _status(session: Session, entries: list[GroupEntry]) -> Result:
    rows = []
    for entry in entries:
        state, _ = state_of(session.home.process(entry.group, entry.type))
        rows.append((KIND_WORDS[entry.type], entry.group, state.value))
    text = "\n".join(f"{kind} {group}: {state}" for kind, group, state in rows)
    return Result(text, ("program", "group", "status"), tuple(rows))


@command("STATUS EXTRACT")
def status_extract(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("STATUS REPLICAT")
def status_replicat(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("STATUS DISTPATH")
def status_distpath(session: Session, *, path_name: str) -> Result:
    return _status(session, find(session, path_name, (GroupType.PATH,)))


@command("STATUS ER", "STATUS")
def status_any(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, tuple(GroupType)))
