"""ADD and DELETE REPLICAT."""

from __future__ import annotations

import os

from ggshell.errors import ConflictError, DatabaseError, DiskError, GgsError, NotFoundError, StateError, UsageError
from ggshell.lake.commits import CommitLog, taken
from ggshell.lake.target import Form, LakeTarget, lake_target
from ggshell.process.start_place import ADDED, FIRST, PLACED
from ggshell.shell import registrations
from ggshell.shell.begin import starting_position
from ggshell.shell.checkpoint_tables import checkpoint_database
from ggshell.shell.commands.checkpoint_table import default_table
from ggshell.shell.groups import REPLICAT, View, require_new, require_stopped, select
from ggshell.shell.registry import command
from ggshell.shell.replicat_rows import MOST_THREADS, row_names
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import LAKE, Checkpoint, GroupType, ReadCheckpoint, SourceType
from ggshell.store.threads import LETTERS
from ggshell.types import TableName


@command("ADD REPLICAT")
def add_replicat(
    session: Session,
    *,
    group_name: str,
    exttrail: str,
    checkpointtable: str = "",
    nodbcheckpoint: bool = False,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    desc: str = "",
    parallel: bool = False,
    coordinated: tuple[str, int] | bool = False,
) -> Message:
    """A group that applies a trail; its row in the checkpoint table is made, or found, when it first runs."""
    lines = registrations.set_aside(session, GroupType.REPLICAT, group_name)
    require_new(session.home, GroupType.REPLICAT, group_name)
    if nodbcheckpoint and checkpointtable:
        raise UsageError("NODBCHECKPOINT excludes CHECKPOINTTABLE.", hint="one of them")
    table = None if nodbcheckpoint else _table(checkpointtable) if checkpointtable else default_table(session)
    if table is None and not nodbcheckpoint:
        raise UsageError(
            "Missing checkpoint table specification.", hint="CHECKPOINTTABLE schema.table here, or in GLOBALS for all"
        )
    start = starting_position(session, exttrail, begin, extseqno, extrba)
    now = session.clock.now()
    found = Checkpoint(
        group_name,
        GroupType.REPLICAT,
        ReadCheckpoint(SourceType.TRAIL, exttrail, startup=start, recovery=start, current=start),
        description=desc,
        created=now,
        begin=begin,
        begin_time=now if begin else 0,
        options={ADDED: PLACED if begin or extseqno is not None or extrba is not None else FIRST}
        | ({"nodbcheckpoint": True} if table is None else {"checkpoint_table": str(table)})
        | _kind(group_name, table, parallel=parallel, coordinated=coordinated),
    )
    registrations.save(session, found)
    kind = " (Parallel)" if parallel else " (Coordinated)" if coordinated else ""
    return Message((*lines, f"REPLICAT{kind} added."))


@command("ADD REPLICAT SPARK")
def add_lake(
    session: Session,
    *,
    group_name: str,
    exttrail: str,
    target: str,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    desc: str = "",
) -> Message:
    """A group that delivers a trail to a lake; its place is kept beside the data."""
    require_new(session.home, GroupType.REPLICAT, group_name)
    log = CommitLog(lake := _free_lake(session, target), group_name)
    log.require_free()
    done = log.latest()
    start = starting_position(session, exttrail, begin, extseqno, extrba)
    now = session.clock.now()
    read = ReadCheckpoint(SourceType.TRAIL, exttrail, startup=start, recovery=start, current=start)
    options = {"kind": LAKE, "target": target, "nodbcheckpoint": True}
    found = Checkpoint(
        group_name,
        GroupType.REPLICAT,
        read,
        description=desc,
        created=now,
        begin=begin,
        begin_time=now if begin else 0,
        options=options,
    )
    registrations.save(session, found)
    lines = ["REPLICAT (Spark) added."]
    if done is not None:
        lines.append(
            f"Lake {lake.folder} holds batches of {group_name.upper()}: it goes on behind them, at {done.position}."
        )
    return Message(tuple(lines))


def _free_lake(session: Session, text: str) -> LakeTarget:
    """Where a new group may write.  Raises ConflictError when it is a folder that another group was added for, DiskError when
    this process could not write there."""
    found = lake_target(session.home, text)
    for other in session.home.groups():
        options = other.checkpoint.options if other.checkpoint is not None else {}
        theirs = options.get("target") if options.get("kind") == LAKE else None
        if found.form is Form.PARQUET and theirs is not None and lake_target(session.home, str(theirs)) == found:
            raise taken(f"lake {found.folder} is the target of REPLICAT {other.group}")
    there = next(path for path in (found.folder, *found.folder.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise DiskError(f"nothing can be written to lake {found.folder}: look at {there}", hint="TARGET another folder")
    return found


def _kind(
    group: str, table: TableName | None, *, parallel: bool, coordinated: tuple[str, int] | bool
) -> dict[str, object]:
    """What the group's options keep of its kind.  Raises UsageError where it cannot be of it."""
    if not parallel and not coordinated:
        return {}
    if table is None:
        raise UsageError("NODBCHECKPOINT is for a classic Replicat only.", hint="CHECKPOINTTABLE schema.table")
    if parallel:
        return {"kind": "PARALLEL"}
    if len(group) > LETTERS:
        raise UsageError(
            f"the name of a coordinated Replicat has at most {LETTERS} letters, {group} has {len(group)}.",
            hint="its threads add three digits",
        )
    threads = coordinated[1] if isinstance(coordinated, tuple) else MOST_THREADS
    return {"kind": "COORDINATED", "maxthreads": threads}


def _table(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


@command("DELETE REPLICAT")
def delete_replicat(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Remove groups and their rows in the checkpoint table; ``!`` leaves rows that cannot be reached."""
    found, errors = select(session, REPLICAT, group_name)
    registrations.confirm_many(session, group_name, "REPLICAT", len(found), force=force)
    lines: list[str] = []
    for each in found:
        require_stopped(each, "deleted")
        lines += _delete_row(session, each, force=force)
        registrations.remove(session, each)
        lines.append(f"Deleted REPLICAT {each.group}.")
    return Message(tuple(lines), tuple(errors))


def _delete_row(session: Session, found: View, *, force: bool) -> list[str]:
    """Remove a group's row, or a group of the same name that is added later would go on from there."""
    table = str(found.checkpoint.options.get("checkpoint_table", ""))
    if not table or not found.checkpoint.started:
        return []
    try:
        with checkpoint_database(session) as (tables, connection):
            for name in row_names(found):
                tables.cleanup(connection, TableName.parse(table), name)
    except (StateError, NotFoundError, DatabaseError, ConflictError) as error:
        if not force:
            raise _unreachable(found, table, error) from error
        return [f"The row of {found.group} in {table} could not be removed: {error.message}"]
    return []


def _unreachable(found: View, table: str, error: GgsError) -> StateError:
    return StateError(
        f"the row of {found.name} in {table} cannot be removed: {error.message}",
        hint=f"DBLOGIN to the target database first, or leave the row: DELETE REPLICAT {found.group} !",
    )
