"""Where a group begins to read: BEGIN, EXTSEQNO and EXTRBA, LSN turned into places of a trail or a log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ggshell.clock import from_datetime
from ggshell.errors import UsageError
from ggshell.types import Csn, TrailPosition, parse_lsn

if TYPE_CHECKING:
    from ggshell.shell.session import Session
    from ggshell.trail.name import TrailName


def begin_time(text: str, now: int) -> int:
    """The moment that BEGIN names, local time; 0 without one.  Raises UsageError."""
    if not text:
        return 0
    if text.upper() == "NOW":
        return now
    try:
        return from_datetime(datetime.fromisoformat(" ".join(text.split())).astimezone())
    except ValueError:
        raise UsageError(f"{text} is no time.", hint="yyyy-mm-dd hh:mi:ss, or NOW") from None


def log_place(text: str) -> Csn:
    """The place in PostgreSQL's log that LSN names.  Raises UsageError."""
    try:
        return Csn(parse_lsn(text)) if "/" in text else Csn(int(text))
    except ValueError:
        raise UsageError(f"{text} is no log position.", hint="LSN 0/50056B8") from None


def starting_position(session: Session, trail: str, begin: str, seqno: int | None, rba: int | None) -> TrailPosition:
    """Where a new reader of a trail begins: the place given, its present end for BEGIN NOW, the first transaction that
    committed at or after the moment of BEGIN, else its first file.  Raises UsageError, TrailError."""
    from ggshell.trail.name import TrailName
    from ggshell.trail.reader import TrailReader

    name = TrailName.parse(trail, session.home.root)
    if seqno is not None or rba is not None:
        return TrailPosition(seqno or 0, rba or 0)
    if begin and begin.upper() != "NOW":
        return first_since(name, begin_time(begin, session.clock.now()))
    reader = TrailReader(name)
    try:
        return (reader.end() or reader.position) if begin else reader.position
    finally:
        reader.close()


def first_since(name: TrailName, moment: int) -> TrailPosition:
    """The first transaction of a trail that committed at or after a moment; the trail's end when there is none yet.

    Whole files before it are left out by the time of their first record.  Raises TrailError for damage.
    """
    from ggshell.trail.reader import TrailReader
    from ggshell.trail.times import read_position_time

    sequences = name.sequences()
    start = sequences[0] if sequences else 0
    for seqno in sequences:
        time = read_position_time(name, TrailPosition(seqno, 0))
        if time is None or time >= moment:
            break
        start = seqno
    reader = TrailReader(name, TrailPosition(start, 0))
    try:
        while (batch := reader.read()) is not None:
            for piece in batch.pieces:
                if piece.begins and piece.header.commit_time >= moment:
                    return TrailPosition(batch.seqno, int(batch.rba[piece.first]))
        return reader.position
    finally:
        reader.close()
