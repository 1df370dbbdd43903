"""Resolves where a group starts to read: converts BEGIN to a time, and EXTSEQNO and EXTRBA to a position in a trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.errors import UsageError
from ggshell.quantities import read_timestamp
from ggshell.types import LAST_OFFSET, TrailPosition

if TYPE_CHECKING:
    from ggshell.cli.session import Session


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

    name = TrailName.parse(trail, session.home.root)
    if seqno is not None or rba is not None:
        if (seqno or 0) > LAST_FILE or (rba or 0) > LAST_OFFSET:
            raise UsageError("EXTSEQNO or EXTRBA is too large", hint=f"they are at most {LAST_FILE} and {LAST_OFFSET}")
        return TrailPosition(seqno or 0, rba or 0)
    if not begin:
        return name.beginning
    from ggshell.trail.positions import end_of, first_since

    return end_of(name) if begin.upper() == "NOW" else first_since(name, begin_time(begin, session.clock.now()))
