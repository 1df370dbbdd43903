"""ADD and DELETE REPLICAT."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ggshell.cli import registrations
from ggshell.cli.begin import starting_position
from ggshell.cli.commands.checkpoint_table import default_table, parsed_table
from ggshell.cli.groups import REPLICAT, View, require_new
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.replicat_rows import MOST_THREADS, folder_target, row_names
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.errors import ConflictError, DatabaseError, GgsError, NotFoundError, StateError, UsageError
from ggshell.groups.checkpoint_rows import LETTERS, group_of_thread, row_key
from ggshell.home.checkpoint import (
    AddedAt,
    Checkpoint,
    GroupKind,
    GroupOptions,
    ReadCheckpoint,
    ReplicatKind,
    SourceType,
)
from ggshell.home.identity import keys_of
from ggshell.home.maintenance import MaintenanceFiles
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TableName, TrailPosition


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
    integrated: bool = False,
    maxthreads: int | None = None,
) -> Message:
    """Add a group that applies a trail; its row in the checkpoint table is created, or found, at the first start.

    INTEGRATED creates a parallel Replicat.
    """
    coordinated = ("MAXTHREADS", maxthreads) if coordinated and maxthreads is not None else coordinated
    parallel = parallel or integrated
    lines = registrations.set_aside(session, GroupKind.REPLICAT, group_name)
    require_new(session.home, GroupKind.REPLICAT, group_name)
    if nodbcheckpoint and checkpointtable:
        raise UsageError("NODBCHECKPOINT cannot be used with CHECKPOINTTABLE.", hint="specify only one of them")
    table = None if nodbcheckpoint else parsed_table(checkpointtable) if checkpointtable else default_table(session)
    if table is None and not nodbcheckpoint:
        raise UsageError(
            "Missing checkpoint table specification.",
            hint="add CHECKPOINTTABLE schema.table here, or to GLOBALS for all groups",
        )
    options = _kind(group_name, table, parallel=parallel, coordinated=coordinated)
    _require_own_row(session, group_name, options.replicat_kind, str(table or ""))
    start = starting_position(session, exttrail, begin, extseqno, extrba)
    now = session.clock.now()
    found = Checkpoint(
        group_name,
        GroupKind.REPLICAT,
        ReadCheckpoint(SourceType.TRAIL, exttrail, startup=start, recovery=start, current=start),
        description=desc,
        created=now,
        begin=begin,
        begin_time=now if begin else 0,
        options=options._replace(
            added=AddedAt.PLACED if begin or extseqno is not None or extrba is not None else AddedAt.FIRST,
            nodbcheckpoint=table is None,
            checkpoint_table=str(table or ""),
            row_keys=keys_of(session.home.root),
        ),
    )
    registrations.add(session, found)
    kind = " (Parallel)" if parallel else " (Coordinated)" if coordinated else ""
    if integrated:
        lines.append(
            "INTEGRATED: apply inside the database is not supported; the group is added as a parallel Replicat."
        )
    return Message((*lines, f"REPLICAT{kind} added."))


@command("ADD REPLICAT EXTFILE")
def add_of_file(
    session: Session,
    *,
    group_name: str,
    file: str,
    checkpointtable: str = "",
    nodbcheckpoint: bool = False,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    desc: str = "",
) -> Message:
    """Add a group that applies the file of an initial load; such a file is a trail."""
    TrailName.parse(file, session.home.root)
    return add_replicat(
        session,
        group_name=group_name,
        exttrail=file,
        checkpointtable=checkpointtable,
        nodbcheckpoint=nodbcheckpoint,
        begin=begin,
        extseqno=extseqno,
        extrba=extrba,
        desc=desc,
    )


@command("ADD REPLICAT SPECIALRUN")
def add_task(
    session: Session,
    *,
    group_name: str,
    begin: str = "",
    checkpointtable: str = "",
    nodbcheckpoint: bool = False,
    desc: str = "",
) -> Message:
    """Add a task, which an Extract with RMTTASK starts. It has no checkpoints, so it needs no checkpoint table."""
    from ggshell.parameters.trail_statements import task_trail

    require_new(session.home, GroupKind.REPLICAT, group_name)
    start = TrailPosition(0, 0)
    found = Checkpoint(
        group_name,
        GroupKind.REPLICAT,
        ReadCheckpoint(SourceType.TRAIL, task_trail(group_name), startup=start, recovery=start, current=start),
        description=desc,
        created=session.clock.now(),
        begin="",
        options=GroupOptions(special=True, nodbcheckpoint=True),
    )
    registrations.add(session, found)
    return Message(("REPLICAT added.",))


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
    """Add a group that delivers a trail to a lake; its position is kept with the data."""
    require_new(session.home, GroupKind.REPLICAT, group_name)
    lake = folder_target(session, target, group_name)
    lake.require_free(_folder_targets(session))
    done = lake.delivered()
    name = TrailName.parse(exttrail, session.home.root).prefix
    if done is not None and done.trail not in ("", name):
        raise ConflictError(
            f"lake {lake.location} contains batches of {group_name.upper()} from another trail, {done.trail}",
            hint="use another group name: a group continues after its batches, whose positions belong to their trail",
        )
    start = starting_position(session, exttrail, begin, extseqno, extrba)
    now = session.clock.now()
    read = ReadCheckpoint(SourceType.TRAIL, exttrail, startup=start, recovery=start, current=start)
    options = GroupOptions(replicat_kind=ReplicatKind.LAKE, target=target, nodbcheckpoint=True)
    found = Checkpoint(
        group_name,
        GroupKind.REPLICAT,
        read,
        description=desc,
        created=now,
        begin=begin,
        begin_time=now if begin else 0,
        options=options,
    )
    registrations.add(session, found)
    lines = ["REPLICAT (Spark) added."]
    if done is not None:
        lines.append(
            f"Lake {lake.location} contains batches of {group_name.upper()}: the group continues after them,"
            f" at {done.position}."
        )
    return Message(tuple(lines))


def _folder_targets(session: Session) -> Iterator[tuple[str, str]]:
    """The names and targets of the groups that deliver to lakes."""
    for other in session.home.groups():
        options = other.checkpoint.options if other.checkpoint is not None else GroupOptions()
        if options.replicat_kind is ReplicatKind.LAKE:
            yield other.group, options.target


def _require_own_row(session: Session, group: str, kind: ReplicatKind, table: str) -> None:
    """Raise ConflictError if a group and a thread of a coordinated Replicat would have the same row in the checkpoint table."""
    for other in session.home.groups():
        options = other.checkpoint.options if other.checkpoint is not None else GroupOptions()
        if not table or options.checkpoint_table != table:
            continue
        pairs = ((group, kind, other.group), (other.group, options.replicat_kind, group))
        for coordinated, of_kind, name in pairs:
            if of_kind is ReplicatKind.COORDINATED and group_of_thread(name.upper()) == coordinated.upper():
                raise ConflictError(
                    f"the row of REPLICAT {name} in checkpoint table {table} would be that of a thread of the coordinated"
                    f" REPLICAT {coordinated}.",
                    hint="take a name that is not the other one with three digits, or another checkpoint table",
                )


def _kind(group: str, table: TableName | None, *, parallel: bool, coordinated: tuple[str, int] | bool) -> GroupOptions:
    """The options with the kind of a Replicat. Raises UsageError if the group cannot be of that kind."""
    if not parallel and not coordinated:
        return GroupOptions()
    if table is None:
        raise UsageError(
            "NODBCHECKPOINT is valid only for a classic Replicat.", hint="use CHECKPOINTTABLE schema.table"
        )
    if parallel:
        return GroupOptions(replicat_kind=ReplicatKind.PARALLEL)
    if len(group) > LETTERS:
        raise UsageError(
            f"the name of a coordinated Replicat can have at most {LETTERS} characters, but {group} has {len(group)}.",
            hint="use a shorter name: its threads add three digits",
        )
    threads = coordinated[1] if isinstance(coordinated, tuple) else MOST_THREADS
    return GroupOptions(replicat_kind=ReplicatKind.COORDINATED, maxthreads=threads)


@command("DELETE REPLICAT")
def delete_replicat(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Delete groups and their rows in the checkpoint table; ``!`` deletes a group even if its rows are out of reach.

    With a wildcard, a group that cannot be deleted does not stop the others.
    """
    delete = partial(_deleted, session, force=force)
    return registrations.delete_each(session, REPLICAT, group_name, delete, what="REPLICAT", force=force)


def _deleted(session: Session, group: HeldGroup, *, force: bool) -> list[str]:
    found = group.found
    owner = registrations.owner_of(session, found.group)
    applied, lines = ("", []) if owner else _delete_row(session, found, force=force)
    group.remove()
    MaintenanceFiles(session.home.root, found.group).remove()
    lines.append(f"Deleted REPLICAT {found.group}.")
    lines += [applied] if applied else []
    if owner:
        lines.append(f"Only its files in this copy are removed: its rows in checkpoint tables belong to {owner}.")
    return lines


def _delete_row(session: Session, found: View, *, force: bool) -> tuple[str, list[str]]:
    """Delete a group's rows in the checkpoint table, so that a new group of this name does not continue from them.

    Returns a line about what the group had applied, and the lines that say why a row could not be deleted.
    """
    table = found.checkpoint.options.checkpoint_table
    if not table or not found.checkpoint.started:
        return "", []
    try:
        with session.logged_in().checkpoint_tables() as tables:
            name = TableName.parse(table)
            row = tables.read(name, found.group, row_key(session.home, found.checkpoint, found.group))
            for group in row_names(found):
                tables.forget(name, group, row_key(session.home, found.checkpoint, group))
    except (StateError, NotFoundError, DatabaseError, ConflictError) as error:
        if not force:
            raise _unreachable(found, table, error) from error
        return "", [f"The row of {found.group} in {table} could not be removed: {error.message}"]
    return (_applied(found.checkpoint, row.csn) if row is not None and row.csn is not None else ""), []


def _applied(checkpoint: Checkpoint, csn: Csn) -> str:
    """The line that says up to which CSN a deleted group had applied its trail.

    A Replicat that is added for the trail later starts at its beginning and would apply that part again.
    """
    additional = checkpoint.options.additional
    more = " and some transactions after it" if additional is not None and not additional.all else ""
    return (
        f"It had applied {checkpoint.read.trail} up to CSN {csn}{more}. A new Replicat for the same trail and tables applies"
        f" all of it again; START REPLICAT {checkpoint.group}, AFTERCSN {csn} continues after it."
    )


def _unreachable(found: View, table: str, error: GgsError) -> StateError:
    return StateError(
        f"the row of {found.name} in {table} cannot be removed: {error.message}",
        hint=f"DBLOGIN to the target database first, or keep the row with DELETE REPLICAT {found.group} !",
    )
