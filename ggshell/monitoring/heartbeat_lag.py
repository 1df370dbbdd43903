"""Calculates and formats the lag of heartbeats: the part of each hop, which add up to the total,
and the current lag of each path from the heartbeat table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ggshell.pipeline.heartbeat.row import Beat

Way = tuple[str | None, str | None, str | None, str | None]
"""Remote database, Extract, path and Replicat of an incoming path."""


PART_NAMES = ("extract", "routing", "read", "apply")
_MICRO = 1e6


class Parts(NamedTuple):
    """The seconds that a heartbeat took from the update to Extract, to the path, to reading by Replicat, and to the commit.

    None means that there is no such hop or that its time is unknown; the next part then counts from the last known time.
    """

    extract: float | None = None
    routing: float | None = None
    read: float | None = None
    apply: float | None = None

    @property
    def total(self) -> float | None:
        """The sum of the known parts, or None if no part is known."""
        known = [part for part in self if part is not None]
        return sum(known) if known else None


def parts_between(times: Sequence[int | None]) -> Parts:
    """Return the parts between (heartbeat, Extract, path, Replicat, received), times in microseconds since 1970."""
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
    """Return the incoming parts of a heartbeat; ``received`` in microseconds since 1970."""
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
    """Return the names and values of the negative parts, which occur if the hosts' clocks differ."""
    return [(name, part) for name, part in zip(PART_NAMES, parts, strict=True) if part is not None and part < 0]


def path_text(extract: str | None, routing_path: str | None, replicat: str | None) -> str:
    """Return a path as text: ``==> EXT1 ==> PMP1 ==> REP1 ==>``; empty if no name is known."""
    known = [name for name in (extract, routing_path, replicat) if name is not None]
    return f"==> {' ==> '.join(known)} ==>" if known else ""


def bar(parts: Parts, width: int = 40, marks: str = "epra") -> str:
    """Draw each hop's share of the total as a bar: one letter per hop, repeated in proportion to the share.

    Negative parts are not shown. Every positive part gets at least one letter if there is room.
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


class Direction(NamedTuple):
    """One direction of a path: its text, its lag parts, and the age of its last heartbeat in seconds (None: unknown)."""

    path: str
    parts: Parts
    age: float | None


class Lag(NamedTuple):
    """A row of the heartbeat table: both directions between two databases; ``now`` in microseconds since 1970."""

    beat: Beat
    now: int
    received: int | None
    incoming: Direction
    outgoing: Direction

    @property
    def negative(self) -> list[tuple[str, float]]:
        """The negative parts of both directions, as (name, seconds)."""
        return [
            (f"{side} {name}", value)
            for side, direction in (("incoming", self.incoming), ("outgoing", self.outgoing))
            for name, value in negative_parts(direction.parts)
        ]


def lag_of(beat: Beat, received: int | None, now: int) -> Lag:
    """Return the lag of a row of the heartbeat table.

    ``received``: when the last heartbeat was committed here, or None if it is no longer in the history table.
    """
    incoming = Direction(
        path_text(beat.incoming_extract, beat.incoming_routing_path, beat.incoming_replicat),
        parts_of(beat, received),
        _age(now, beat.incoming_heartbeat_ts),
    )
    outgoing_times = (
        beat.outgoing_heartbeat_ts,
        beat.outgoing_extract_ts,
        beat.outgoing_routing_ts,
        beat.outgoing_replicat_ts,
        None,
    )
    outgoing = Direction(
        path_text(beat.outgoing_extract, beat.outgoing_routing_path, beat.outgoing_replicat),
        parts_between(outgoing_times),
        _age(now, beat.outgoing_heartbeat_ts),
    )
    return Lag(beat, now, received, incoming, outgoing)


def _age(now: int, sent: int | None) -> float | None:
    return None if sent is None else (now - sent) / 1e6
