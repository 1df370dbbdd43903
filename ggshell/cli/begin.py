"""Resolves where a group starts to read: converts BEGIN to a time, and EXTSEQNO and EXTRBA to a position in a trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.errors import UsageError
from ggshell.quantities import read_timestamp
from ggshell.types import LAST_OFFSET, TrailPosition

if TYPE_CHECKING:
    from ggshell.cli.session import Session
    from ggshell.trail.name import TrailName


def begin_time(text: str, now: int) -> int:
    """Return the time that BEGIN names, in local time, as microseconds; 0 for an empty text. Raises UsageError."""
    if not text:
        return 0
    if text.upper() == "NOW":
        return now
    try:
        return read_timestamp(text).moment
    except ValueError as error:
        raise UsageError(str(error), hint="yyyy-mm-dd hh:mi:ss, or NOW") from None


def starting_position(session: Session, trail: str, begin: str, seqno: int | None, rba: int | None) -> TrailPosition:
    """Return where a new reader of a trail starts. Raises UsageError, TrailError.

    That is the given position, the current end of the trail for BEGIN NOW, the first transaction committed at or after
    the time of BEGIN, or else the first file.
    """
    from ggshell.trail.name import LAST_FILE, TrailName
    from ggshell.trail.reader import TrailReader

    name = TrailName.parse(trail, session.home.root)
    if seqno is not None or rba is not None:
        if (seqno or 0) > LAST_FILE or (rba or 0) > LAST_OFFSET:
            raise UsageError("EXTSEQNO or EXTRBA is too large", hint=f"they are at most {LAST_FILE} and {LAST_OFFSET}")
        return TrailPosition(seqno or 0, rba or 0)
    if begin and begin.upper() != "NOW":
        return first_since(name, begin_time(begin, session.clock.now()))
    reader = TrailReader(name)
    try:
        return (reader.end() or reader.position) if begin else reader.position
    finally:
        reader.close()


def first_since(name: TrailName, moment: int) -> TrailPosition:
    """Return the first transaction of a trail that committed at or after a time, or else the trail's end.

    Files before it are skipped by the time of their first record. Raises TrailError for damage.
    """
    from ggshell.trail.positions import read_position_time
    from ggshell.trail.reader import TrailReader

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
