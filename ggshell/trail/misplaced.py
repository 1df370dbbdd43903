"""Check that a trail position still matches the CSN in a checkpoint.

A checkpoint holds both: the place to continue reading from, and the CSN up to which everything is applied. If a trail was
written again from an earlier point (its home was restored from a backup), the same place lies among other transactions. A
reader that continues there skips the transactions before it, or starts in the middle of a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final, NamedTuple

from ggshell.errors import TrailError
from ggshell.trail.finding import transactions_from
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

CODE: Final = "GGS-00565"
_PROBE: Final = 128 << 10


class Misplaced(NamedTuple):
    """A position that does not match its CSN.

    ``before``: the CSN of the transaction before the place, None if no record begins at the place; ``resume``: the place
    from which transactions after the CSN may follow."""

    before: Csn | None
    resume: TrailPosition


def require_placed(name: TrailName, position: TrailPosition, csn: Csn | None, group: str, remedy: str) -> None:
    """Raises TrailError if a position cannot belong to a group that has applied everything up to ``csn``.

    ``remedy`` is the hint: how the group continues by its CSN, from ``{seqno}`` and ``{rba}``.
    """
    found = misplaced(name, position, csn) if csn is not None else None
    if found is None:
        return
    lies = f"is after CSN {found.before}" if found.before is not None else "is not the beginning of a record"
    raise TrailError(
        f"{group} is at {position} of trail {name} and has applied everything up to CSN {csn}, but that position {lies}:"
        " the trail was rewritten, for example after its home was restored from a backup",
        code=CODE,
        hint=remedy.format(seqno=found.resume.seqno, rba=found.resume.rba),
    )


def misplaced(name: TrailName, position: TrailPosition, csn: Csn) -> Misplaced | None:
    """Return why a place cannot be the one after a CSN; None if it matches or its file does not exist."""
    files = [seqno for seqno in name.sequences() if seqno <= position.seqno]
    if not files or files[-1] != position.seqno:
        return None
    begins = _begins_record(name, position)
    before, resume = None, TrailPosition(files[0], 0)
    for place, found in _backwards(name, files, position):
        before = before or found
        if found.value <= csn.value:
            resume = place
            break
    if begins and (before is None or before.value <= csn.value):
        return None
    return Misplaced(before if begins else None, resume)


def _begins_record(name: TrailName, position: TrailPosition) -> bool:
    """Whether a record begins or ends at a place; a damaged record may begin where an undamaged one ends."""
    file = InspectedFile(name.file(position.seqno))
    try:
        if position.rba <= file.first or position.rba >= file.size:
            return True
        seen = file.at(position.rba)
        return (seen is not None and bool(seen.size) and not seen.fault) or file.before(position.rba) is not None
    finally:
        file.close()


def _backwards(name: TrailName, files: list[int], position: TrailPosition) -> Iterator[tuple[TrailPosition, Csn]]:
    """Yield the transactions that begin before a place, last one first."""
    for seqno in reversed(files):
        file = InspectedFile(name.file(seqno))
        try:
            high, size = position.rba if seqno == position.seqno else file.size, _PROBE
            while high > file.first:
                low = max(file.first, high - size)
                yield from reversed(_between(file, seqno, low, high))
                high, size = low, size * 2
        finally:
            file.close()


def _between(file: InspectedFile, seqno: int, low: int, high: int) -> list[tuple[TrailPosition, Csn]]:
    """Return the transactions that begin in a range of a file."""
    found = takewhile(lambda item: item[0] < high, transactions_from(file, low, high - low))
    return [(TrailPosition(seqno, rba), header.csn) for rba, header in found]
