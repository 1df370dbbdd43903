"""Lag arithmetic on heartbeats: the parts of a way, which add up to the whole, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ggshell.heartbeat.row import Beat

PART_NAMES = ("extract", "routing", "read", "apply")
_MICRO = 1e6


class Parts(NamedTuple):
    """Seconds that a heartbeat took from its birth to Extract, on to the path, to Replicat's reading, and to the commit.

    None: there is no such hop, or nothing is known of it; what follows counts from the last time that is known.
    """

    extract: float | None = None
    routing: float | None = None
    read: float | None = None
    apply: float | None = None

    @property
    def total(self) -> float | None:
        """The whole, None when not even its first part is known."""
        known = [part for part in self if part is not None]
        return sum(known) if known else None


def parts_between(times: Sequence[int | None]) -> Parts:
    """Parts of (birth, Extract, path, Replicat, received), in microseconds since 1970."""
    found: list[float | None] = []
    before = times[0]
    for moment in times[1:]:
        if moment is None or before is None:
            found.append(None)
            continue
        found.append((moment - before) / _MICRO)
        before = moment
    return Parts(*found)


def parts_of(beat: Beat, received: int | None) -> Parts:
    """The incoming parts of a heartbeat that was received at a moment."""
    return parts_between(
        (
            beat.incoming_heartbeat_ts,
            beat.incoming_extract_ts,
            beat.incoming_routing_ts,
            beat.incoming_replicat_ts,
            received,
        )
    )


def negative_parts(parts: Parts) -> list[tuple[str, float]]:
    """The parts that clocks which disagree have made negative."""
    return [(name, part) for name, part in zip(PART_NAMES, parts, strict=True) if part is not None and part < 0]


def path_text(extract: str | None, routing_path: str | None, replicat: str | None) -> str:
    """A way as text: ``==> EXT1 ==> PMP1 ==> REP1 ==>``; empty where nothing is known."""
    known = [name for name in (extract, routing_path, replicat) if name is not None]
    return f"==> {' ==> '.join(known)} ==>" if known else ""


def bar(parts: Parts, width: int = 40, marks: str = "epra") -> str:
    """The share of each hop in the whole as a bar: a letter for each hop, its length the share.

    Negative parts have no length.  Every part that is above zero has one letter at least while there is room.
    """
    lengths = [max(0.0, part or 0.0) for part in parts]
    whole = sum(lengths)
    if not whole:
        return "." * width
    cells = [max(1, round(length / whole * width)) if length else 0 for length in lengths]
    while sum(cells) > width:
        cells[cells.index(max(cells))] -= 1
    while sum(cells) < width:
        cells[cells.index(max(cells))] += 1
    return "".join(mark * count for mark, count in zip(marks, cells, strict=True))
