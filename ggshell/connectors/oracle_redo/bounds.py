"""Finds the beginning and the end of the redo, and the SCN of a time, for the start point of an Extract."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ggshell.connectors.oracle_redo.rows import RedoRow, decode_rows
from ggshell.connectors.oracle_redo.segments import Segment, first_line, last_line, list_segments, open_segment
from ggshell.errors import CaptureError


class Bound(NamedTuple):
    """An SCN, and the time of its row in microseconds since 1970; zeros for an empty log."""

    scn: int
    time: int


def first_bound(folder: Path) -> Bound:
    """The first row of the log."""
    rows = [_row(first_line(segment), segment) for segment in _in_order(folder)]
    return min((_bound(row) for row in rows if row is not None), default=Bound(0, 0))


def last_bound(folder: Path) -> Bound:
    """The last row of the log that is written so far. With several threads, the last row of all."""
    found = Bound(0, 0)
    for segments in list_segments(folder).values():
        for number in sorted(segments, reverse=True):
            row = _row(last_line(segments[number]), segments[number])
            if row is not None:
                found = max(found, _bound(row))
                break
    return found


def bound_at(folder: Path, moment: int) -> Bound:
    """The first row at a time or later. If there is none yet, the end of the log with the SCN after the last one.

    Raises CaptureError when the log begins later than that time.
    """
    first = first_bound(folder)
    if first.time > moment:
        raise CaptureError(
            f"the redo in {folder} begins after that time, at SCN {first.scn}",
            code="GGS-00524",
            hint="use a later time in BEGIN, or restore older segments",
        )
    candidates = [
        found
        for segments in list_segments(folder).values()
        if (found := _first_since(list(map(segments.__getitem__, sorted(segments))), moment)) is not None
    ]
    if candidates:
        return min(candidates)
    last = last_bound(folder)
    return Bound(last.scn + 1, last.time)


def _first_since(segments: list[Segment], moment: int) -> Bound | None:
    """The first row of a thread at a time or later. Whole segments before it are skipped."""
    start = 0
    for number, segment in enumerate(segments):
        row = _row(first_line(segment), segment)
        if row is None or row.time >= moment:
            break
        start = number
    for segment in segments[start:]:
        with open_segment(segment) as file:
            for line in file:
                row = _row(line, segment)
                if row is not None and row.time >= moment:
                    return _bound(row)
    return None


def _in_order(folder: Path) -> list[Segment]:
    return [segments[min(segments)] for segments in list_segments(folder).values()]


def _row(line: bytes, segment: Segment) -> RedoRow | None:
    rows = decode_rows(line, segment.thread, segment.number, str(segment.path)) if line.endswith(b"\n") else []
    return rows[0] if rows else None


def _bound(row: RedoRow) -> Bound:
    return Bound(row.scn, row.time)
