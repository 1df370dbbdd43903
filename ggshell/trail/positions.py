"""Find what belongs to trail positions: the transactions between two of them, and the commit time of the next record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.trail import decode
from ggshell.trail.finding import position_of_time
from ggshell.trail.name import TrailName
from ggshell.trail.opened import OpenedFile, open_file
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import TrailReader, visible_end
from ggshell.types import Csn, TrailPosition


class TransactionSpan(NamedTuple):
    """The transactions that begin at or after one place and before another; times are in microseconds since 1970."""

    transactions: int = 0
    rows: int = 0
    first_csn: Csn | None = None
    last_csn: Csn | None = None
    first_time: int = 0
    last_time: int = 0


def span_between(name: TrailName, low: TrailPosition, high: TrailPosition) -> TransactionSpan:
    """Count the transactions between two places. Raises TrailError for damage between them."""
    found = TransactionSpan()
    reader = TrailReader(name, low)
    try:
        while reader.position < high and (batch := reader.read()) is not None:
            for piece in batch.pieces:
                if TrailPosition(batch.seqno, int(batch.rba[piece.first])) >= high:
                    return found
                header = piece.header
                found = TransactionSpan(
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


def after_transaction(name: TrailName, place: TrailPosition) -> TrailPosition:
    """Return the start of the transaction after the next one; the trail's end if there is none yet."""
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


_CHUNK = 1 << 17
"""Bytes per read; larger than the largest record."""


def read_position_time(name: TrailName, position: TrailPosition) -> int | None:
    """Return the commit time of the first visible row at or after a position (microseconds since 1970); None without one.

    The lag of a stopped group is computed from it. Nothing before the position is read. Raises TrailError for damage,
    or if the position's file is missing while other files exist.
    """
    end = visible_end(name)
    while end is not None and position < end:
        try:
            file = open_file(name, position.seqno)
        except FileNotFoundError:
            require_reachable(name, position)
            return None
        try:
            limit = end.rba if end.seqno == file.seqno else file.size()
            time = _first_time(file, position.rba, limit)
        finally:
            file.close()
        if time is not None:
            return time
        position = TrailPosition(position.seqno + 1, 0)
    return None


def _first_time(file: OpenedFile, place: int, limit: int) -> int | None:
    place = max(place, file.first)
    while place < limit:
        chunk = file.read(min(_CHUNK, limit - place), place)
        records = decode.parse(chunk, file.path, place)
        rows = np.flatnonzero(records.is_row)
        if len(rows):
            return int(records.header["io_time"][rows[0]]) - JULIAN_EPOCH_MICROSECONDS
        if not records.end:
            raise decode.damaged(file.path, place, "a complete record before the durable end of the trail")
        place += records.end
    return None


def first_since(name: TrailName, moment: int) -> TrailPosition:
    """Return the first transaction of a trail that committed at or after a time, or else the trail's end."""
    return position_of_time(name, moment) or end_of(name)


def end_of(name: TrailName) -> TrailPosition:
    """Return the visible end of a trail; its beginning while it has no file."""
    return visible_end(name) or name.beginning
