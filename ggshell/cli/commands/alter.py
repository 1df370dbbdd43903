"""ALTER EXTRACT and ALTER REPLICAT: set another read position for groups that are not running."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.cli import registrations
from ggshell.cli.begin import begin_time, starting_position
from ggshell.cli.commands.alias_extract import require_no_alias
from ggshell.cli.commands.extract import skipped
from ggshell.cli.groups import ER, EXTRACT, REPLICAT, View, is_wildcard, of_each, one, require_stopped, select
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.replicat_rows import require_movable, set_row, unapplied
from ggshell.cli.results import Message, Note
from ggshell.cli.session import Session
from ggshell.cli.start_position import told
from ggshell.connectors.registry import source_log
from ggshell.connectors.source_log import AskedPosition
from ggshell.errors import GgsError, UsageError
from ggshell.groups.progress import moved_in_trail, without_completed
from ggshell.home.checkpoint import AddedAt, Checkpoint, GroupKind, SourceType
from ggshell.types import TrailPosition


@command("ALTER EXTRACT")
def alter_extract(
    session: Session,
    *,
    group_name: str,
    begin: str = "",
    eof: bool = False,
    extseqno: int | None = None,
    extrba: int | None = None,
    lsn: str = "",
    scn: str = "",
    lognum: int | None = None,
    logpos: int | None = None,
    gtidset: str = "",
    desc: str = "",
    etrollover: bool = False,
    thread: int = 1,
) -> Message:
    """Set the position where a stopped Extract or pump continues, or its description; a wildcard alters each group.

    ``thread``: a log has one thread, so the grammar accepts only 1.
    """
    notes: list[Note] = []
    begin = "NOW" if eof else begin
    moment = begin_time(begin, session.clock.now())
    asked = AskedPosition(begin, moment, lsn, scn, extseqno, extrba, lognum, logpos, gtidset)
    moves = bool(begin) or asked.in_log or extseqno is not None or extrba is not None

    def alter_one(group: HeldGroup) -> list[str]:
        found = group.found
        require_no_alias(found, "ALTER EXTRACT")
        changed, lines = found.checkpoint._replace(description=desc or found.checkpoint.description), []
        if moves:
            changed, place = _moved(session, found, changed, asked)
            notes.extend(skipped(session, changed._replace(read=found.checkpoint.read)))
            lines.append(f"{found.name} continues at {place}.")
        if etrollover:
            changed = changed._replace(options=changed.options._replace(etrollover=True))
            lines.append(
                f"{found.name} begins a new trail file at the next start; its readers switch to it automatically."
            )
        group.save(changed)
        return [*lines, _altered(found, group_name)]

    groups = _stopped(session, EXTRACT, group_name)
    if not (moves or desc or etrollover):
        raise UsageError(
            "ALTER requires at least one option.",
            hint="add BEGIN, EXTSEQNO, EXTRBA, LSN, SCN, LOGNUM, GTIDSET, DESC or ETROLLOVER",
        )
    done, errors = _of_each(session, groups, group_name, alter_one)
    return Message(tuple(done), tuple(errors), notes=tuple(notes))


@command("ALTER REPLICAT")
def alter_replicat(
    session: Session,
    *,
    group_name: str,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    exttrail: str = "",
    desc: str = "",
    filterduptransactions: bool = False,
    dryrun: bool = False,
) -> Message:
    """Set the position of stopped Replicats.

    If a Replicat has run, its row in the checkpoint table is set first, since the row is decisive. With
    FILTERDUPTRANSACTIONS the process moves the row itself and keeps the record of applied transactions.
    """
    moves = bool(begin or exttrail) or extseqno is not None or extrba is not None

    def alter_one(group: HeldGroup) -> list[str]:
        found = group.found
        changed, lines = found.checkpoint._replace(description=desc or found.checkpoint.description), []
        if moves:
            require_movable(session, found)
            trail = exttrail or found.checkpoint.read.trail
            changed, place = _at_trail(session, changed, trail, begin, extseqno, extrba)
            if dryrun:
                return told(session, found, place)
            if filterduptransactions:
                changed = changed._replace(options=changed.options._replace(added=AddedAt.PLACED))
            else:
                set_row(session, found, place)
                changed = unapplied(changed)
            lines.append(f"{found.name} continues at {place} of {trail}.")
        group.save(changed)
        return [*lines, _altered(found, group_name)]

    groups = _stopped(session, REPLICAT, group_name)
    if not (moves or desc):
        raise UsageError("ALTER requires at least one option.", hint="add BEGIN, EXTSEQNO, EXTRBA, EXTTRAIL or DESC")
    if dryrun and not moves:
        raise UsageError(
            "DRYRUN shows what another position would skip, and there is none.",
            hint="add BEGIN, EXTSEQNO, EXTRBA or EXTTRAIL, or leave out DRYRUN",
        )
    done, errors = _of_each(session, groups, group_name, alter_one)
    return Message(tuple(done), tuple(errors))


@command("ALTER")
def alter(
    session: Session,
    *,
    group_name: str,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    lsn: str = "",
    scn: str = "",
    lognum: int | None = None,
    logpos: int | None = None,
    gtidset: str = "",
    desc: str = "",
    etrollover: bool = False,
    thread: int = 1,
) -> Message:
    """Run ALTER for a group that is named without its type."""
    if one(session, ER, group_name).type is GroupKind.EXTRACT:
        place = {"begin": begin, "extseqno": extseqno, "extrba": extrba, "lsn": lsn, "scn": scn}
        place |= {"lognum": lognum, "logpos": logpos, "gtidset": gtidset}
        return alter_extract(session, group_name=group_name, desc=desc, etrollover=etrollover, **place)  # type: ignore[arg-type]
    if etrollover:
        raise UsageError("a Replicat does not write a trail.", hint="use ETROLLOVER with an Extract")
    if AskedPosition(lsn=lsn, scn=scn, lognum=lognum, logpos=logpos, gtid=gtidset).in_log:
        raise UsageError(
            "a Replicat reads a trail, which does not have LSNs.", hint="use EXTSEQNO and EXTRBA, or BEGIN"
        )
    return alter_replicat(session, group_name=group_name, begin=begin, extseqno=extseqno, extrba=extrba, desc=desc)


def _of_each(
    session: Session, groups: list[View], pattern: str, alter_one: Callable[[HeldGroup], list[str]]
) -> tuple[list[str], list[GgsError]]:
    """Alter each group while it is held."""

    def held(found: View) -> list[str]:
        with registrations.held(session, found, "altered") as group:
            return alter_one(group)

    return of_each(groups, pattern, held)


def _altered(found: View, pattern: str) -> str:
    return f"{found.name} altered." if is_wildcard(pattern) else f"{found.type} altered."


def _stopped(session: Session, kinds: tuple[GroupKind, ...], pattern: str) -> list[View]:
    """Return the groups that match a name or wildcard. Raises StateError if one of them is running."""
    found, errors = select(session, kinds, pattern)
    if errors:
        raise errors[0]
    for each in found:
        require_stopped(each, "altered")
    if is_wildcard(pattern) and len(found) > 1:
        session.confirm(f"Alter {len(found)} groups of {pattern}", "alter one group in each statement")
    return found


def _moved(
    session: Session,
    found: View,
    changed: Checkpoint,
    asked: AskedPosition,
) -> tuple[Checkpoint, object]:
    source = changed.read.source
    if source is SourceType.TABLE:
        raise UsageError(f"{found.name} reads tables, which do not have positions.")
    if source is SourceType.TRAIL:
        if asked.in_log:
            raise UsageError(
                f"{found.name} reads a trail, which does not have LSNs.", hint="use EXTSEQNO and EXTRBA, or BEGIN"
            )
        altered, place = _at_trail(session, changed, changed.read.trail, asked.begin, asked.seqno, asked.rba)
        return moved_in_trail(changed, place)._replace(
            read=altered.read, begin=altered.begin, begin_time=altered.begin_time, record_time=0, caught_up=0
        ), place
    moved = source_log(changed.options).alter(session.login, changed, asked)
    return without_completed(moved.checkpoint) if moved.goes_back else moved.checkpoint, moved.position


def _at_trail(
    session: Session, changed: Checkpoint, trail: str, begin: str, seqno: int | None, rba: int | None
) -> tuple[Checkpoint, TrailPosition]:
    """Set a reader of a trail to a position. EXTRBA alone stays within the current file."""
    present = changed.read.current
    if rba is not None and seqno is None:
        seqno = present.seqno if isinstance(present, TrailPosition) else 0
    place = starting_position(session, trail, begin, seqno, rba)
    read = changed.read._replace(
        trail=trail, startup=place, recovery=place, current=place, startup_time=0, recovery_time=0, current_time=0
    )
    now = session.clock.now()
    moment = begin_time(begin, now)
    return changed._replace(read=read, begin=begin, begin_time=moment, record_time=0, caught_up=0), place
