"""ALTER EXTRACT and ALTER REPLICAT: another place to read from, for groups that do not run."""

from __future__ import annotations

from typing import Any

from ggshell.errors import StateError, UsageError
from ggshell.shell import registrations, start_place
from ggshell.shell.begin import begin_time, log_place, starting_position
from ggshell.shell.groups import ER, EXTRACT, REPLICAT, View, is_wildcard, one, require_stopped, select
from ggshell.shell.redo_begin import redo_altered
from ggshell.shell.registry import command
from ggshell.shell.replicat_rows import require_movable, set_row
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import Checkpoint, GroupType, SourceType
from ggshell.types import Csn, LogPosition, TrailPosition, format_lsn


@command("ALTER EXTRACT")
def alter_extract(
    session: Session,
    *,
    group_name: str,
    begin: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    lsn: str = "",
    scn: str = "",
    desc: str = "",
    etrollover: bool = False,
) -> Message:
    """Set where a stopped Extract or pump goes on, or its description; of a wildcard, for each."""
    lines: list[str] = []
    for found in _stopped(session, EXTRACT, group_name):
        if not (begin or lsn or scn or desc or etrollover) and extseqno is None and extrba is None:
            raise UsageError("nothing is to be altered.", hint="BEGIN, EXTSEQNO, EXTRBA, LSN, SCN, DESC or ETROLLOVER")
        changed = found.checkpoint._replace(description=desc or found.checkpoint.description)
        if begin or lsn or scn or extseqno is not None or extrba is not None:
            changed, place = _moved(session, found, changed, begin, extseqno, extrba, lsn, scn)
            lines.append(f"{found.name} goes on at {place}.")
        if etrollover:
            changed = changed._replace(options={**changed.options, "etrollover": True})
            lines.append(f"{found.name} begins a new trail file at its next start; its readers follow by themselves.")
        registrations.save(session, changed)
        lines.append("EXTRACT altered.")
    return Message(tuple(lines))


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
    dryrun: bool = False,
) -> Message:
    """The same of Replicats; where one has run, its row in the checkpoint table is set first, since that is what counts."""
    lines: list[str] = []
    for found in _stopped(session, REPLICAT, group_name):
        changed = found.checkpoint._replace(description=desc or found.checkpoint.description)
        if begin or exttrail or extseqno is not None or extrba is not None:
            require_movable(session, found)
            trail = exttrail or found.checkpoint.read.trail
            changed, place = _at_trail(session, changed, trail, begin, extseqno, extrba)
            if dryrun:
                lines += start_place.told(session, found, place)
                continue
            set_row(session, found, place)
            changed = changed._replace(latest_csn="", latest_xid="")
            lines.append(f"{found.name} goes on at {place} of {trail}.")
        elif not desc:
            raise UsageError("nothing is to be altered.", hint="BEGIN, EXTSEQNO, EXTRBA, EXTTRAIL or DESC")
        registrations.save(session, changed)
        lines.append("REPLICAT altered.")
    return Message(tuple(lines))


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
    desc: str = "",
    etrollover: bool = False,
) -> Message:
    """ALTER of a group that is named without its kind."""
    if one(session, ER, group_name).type is GroupType.EXTRACT:
        place = {"begin": begin, "extseqno": extseqno, "extrba": extrba, "lsn": lsn, "scn": scn}
        return alter_extract(session, group_name=group_name, desc=desc, etrollover=etrollover, **place)  # type: ignore[arg-type]
    if etrollover:
        raise UsageError("a Replicat writes no trail.", hint="ETROLLOVER is for Extract")
    if lsn or scn:
        raise UsageError("a Replicat reads a trail, which has no LSN.", hint="EXTSEQNO and EXTRBA, or BEGIN")
    return alter_replicat(session, group_name=group_name, begin=begin, extseqno=extseqno, extrba=extrba, desc=desc)


def _stopped(session: Session, kinds: tuple[GroupType, ...], pattern: str) -> list[View]:
    """The groups of a name or wildcard.  Raises StateError when one of them runs."""
    found, errors = select(session, kinds, pattern)
    if errors:
        raise errors[0]
    for each in found:
        require_stopped(each, "altered")
    if is_wildcard(pattern) and len(found) > 1:
        session.confirm(f"Alter {len(found)} groups of {pattern}")
    return found


def _moved(
    session: Session,
    found: View,
    changed: Checkpoint,
    begin: str,
    seqno: int | None,
    rba: int | None,
    lsn: str,
    scn: str,
) -> tuple[Checkpoint, object]:
    source = changed.read.source
    if source is SourceType.TABLE:
        raise UsageError(f"{found.name} reads tables, which have no position.")
    if source is SourceType.TRAIL:
        if lsn or scn:
            raise UsageError(f"{found.name} reads a trail, which has no LSN.", hint="EXTSEQNO and EXTRBA, or BEGIN")
        return _at_trail(session, changed, changed.read.trail, begin, seqno, rba)
    if changed.options.get("redo"):
        if seqno is not None or rba is not None:
            raise UsageError("a place in redo is told by its SCN.", hint="SCN n, or BEGIN")
        return redo_altered(changed, begin, lsn, scn, session.clock.now())
    if scn:
        raise UsageError("PostgreSQL's log has LSNs.", hint="LSN 0/50056B8")
    return _at_log(session, found, changed, begin, seqno, rba, lsn)


def _at_trail(
    session: Session, changed: Checkpoint, trail: str, begin: str, seqno: int | None, rba: int | None
) -> tuple[Checkpoint, TrailPosition]:
    """A reader of a trail set to a place of it.  EXTRBA alone stays within the present file."""
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


def _at_log(
    session: Session, found: View, changed: Checkpoint, begin: str, seqno: int | None, rba: int | None, lsn: str
) -> tuple[Checkpoint, str]:
    """A reader of the log set to a place of it.  Sequence number and RBA are the two halves of an LSN.

    Raises StateError for a place before the present one: the slot has let go of it, and its rows are in the trail.
    """
    moment, present = changed.begin_time, changed.read.current
    if lsn:
        csn = log_place(lsn)
    elif seqno is not None or rba is not None:
        sequence = seqno if seqno is not None else getattr(present, "sequence", 0)
        csn = Csn(sequence << 32 | (rba or 0))
    elif begin.upper() == "NOW":
        from ggshell.databases.postgres.session import current_position

        position, moment = current_position(session.connection())
        csn = Csn(position)
    else:
        return _since(session, found, changed, begin)
    done = present.csn if isinstance(present, LogPosition) else 0
    if csn.value < done:
        raise StateError(
            f"{found.name} cannot go back to LSN {format_lsn(csn.value)}: everything before {format_lsn(done)} is in its"
            " trail, and the server need not keep it any more.",
            hint="have the readers of its trail go back instead: ALTER REPLICAT …, EXTSEQNO …, EXTRBA …",
        )
    place = LogPosition.of_lsn(csn.value)
    options = {name: value for name, value in changed.options.items() if name != "since"}
    read = changed.read._replace(startup=LogPosition(0, 0, 0), recovery=place, current=place, current_time=0)
    fresh: dict[str, Any] = {"record_time": 0, "caught_up": 0} if begin else {}
    changed = changed._replace(
        read=read, begin=lsn or begin, begin_csn=str(csn), begin_time=moment, options=options, **fresh
    )
    return changed, f"LSN {format_lsn(csn.value)}"


def _since(session: Session, found: View, changed: Checkpoint, begin: str) -> tuple[Checkpoint, str]:
    """A time as the start point, for an Extract that has captured nothing yet."""
    if changed.started:
        raise StateError(
            f"{found.name} has captured already: a time is the start point only of an Extract that has not.",
            hint="BEGIN NOW, or LSN …",
        )
    moment = begin_time(begin, session.clock.now())
    options = {**changed.options, "since": moment}
    return changed._replace(begin=begin, begin_time=moment, options=options), f"the first commit since {begin}"
