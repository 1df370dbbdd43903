"""The lag of each way as the heartbeat table has it now."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.heartbeat.lag import Parts, negative_parts, parts_between, parts_of, path_text
from ggshell.heartbeat.row import Beat

Way = tuple[str | None, str | None, str | None, str | None]
"""Remote database, Extract, path, Replicat of an incoming way."""


class Direction(NamedTuple):
    """One direction of a way: its text, its parts, and how old its last heartbeat is, in seconds (None: there is none)."""

    path: str
    parts: Parts
    age: float | None


class Lag(NamedTuple):
    """A row of the heartbeat table: two directions between two databases; ``now`` in microseconds since 1970."""

    beat: Beat
    now: int
    received: int | None
    incoming: Direction
    outgoing: Direction

    @property
    def negative(self) -> list[tuple[str, float]]:
        """The parts of either direction that are below zero, named."""
        return [
            (f"{side} {name}", value)
            for side, direction in (("incoming", self.incoming), ("outgoing", self.outgoing))
            for name, value in negative_parts(direction.parts)
        ]


def lag_of(beat: Beat, received: int | None, now: int) -> Lag:
    """``received``: when the last heartbeat was committed here, None when the history no longer knows."""
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
