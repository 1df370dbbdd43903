"""What lies between two places of a trail: for those who must know what a jump would leave out or repeat."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TrailPosition


class Span(NamedTuple):
    """Transactions that begin at one place or behind it, and before another; times in microseconds since 1970."""

    transactions: int = 0
    rows: int = 0
    first_csn: Csn | None = None
    last_csn: Csn | None = None
    first_time: int = 0
    last_time: int = 0


def span_between(name: TrailName, low: TrailPosition, high: TrailPosition) -> Span:
    """Raises TrailError for damage between the two."""
    found = Span()
    reader = TrailReader(name, low)
    try:
        while reader.position < high and (batch := reader.read()) is not None:
            for piece in batch.pieces:
                if TrailPosition(batch.seqno, int(batch.rba[piece.first])) >= high:
                    return found
                header = piece.header
                found = Span(
                    found.transactions + piece.begins,
                    found.rows + piece.count,
                    found.first_csn or header.csn,
                    header.csn,
                    found.first_time or header.commit_time,
                    header.commit_time,
                )
    finally:
        reader.close()
    return found


def behind_transaction(name: TrailName, place: TrailPosition) -> TrailPosition:
    """Where the transaction after the next one begins; the trail's end when there is none yet."""
    reader = TrailReader(name, place)
    begun = False
    try:
        while (batch := reader.read()) is not None:
            for piece in batch.pieces:
                if piece.begins and begun:
                    return TrailPosition(batch.seqno, int(batch.rba[piece.first]))
                begun = True
        return reader.position
    finally:
        reader.close()
