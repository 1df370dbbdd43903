"""COUNT: count records by type, table, interval and transaction; a whole file without conditions, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import NotFoundError
from ggshell.logdump.answers import Answer, Counted, CountedInterval, Lines, Lost, Tally, TransactionSize
from ggshell.logdump.cursor import BEGINNINGS, Walk, is_row
from ggshell.logdump.display import Display
from ggshell.logdump.filters import FilterCandidate
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import decode, iotypes
from ggshell.trail.decode import Records
from ggshell.trail.inspection import InspectedFile, InspectedRecord

_OTHERS = "*Others*"


@action("COUNT")
def count(
    session: LogdumpSession,
    *,
    starttime: str = "",
    endtime: str = "",
    interval: int = 0,
    logtrail: str = "",
    file: str = "",
    detail: bool = False,
) -> Iterator[Answer]:
    """Count the open file, or files by a pattern, from beginning to end; damage is skipped and reported."""
    span = _Span(session.display, starttime, endtime, interval)
    if logtrail:
        pattern = Path(logtrail)
        paths = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_file())
        if not paths:
            raise NotFoundError(f"file {logtrail} does not exist")
        result = Counted([str(path) for path in paths], detail=detail)
        for path in paths:
            looked = InspectedFile(path)
            try:
                _count_file(session, looked, result, span, file)
            finally:
                looked.close()
    else:
        result = Counted([str(session.file.path)], detail=detail)
        _count_file(session, session.file, result, span, file)
    result.intervals = span.intervals
    yield result


class _Span:
    """The time range to count, optionally in intervals."""

    def __init__(self, display: Display, start: str, end: str, minutes: int) -> None:
        self._from = display.moment(start) if start else None
        self._to = display.moment(end) if end else None
        self._step = timedelta(minutes=minutes)
        self.intervals: list[CountedInterval] = []

    @property
    def everything(self) -> bool:
        return self._from is None and self._to is None and not self._step

    def holds(self, moment: datetime | None) -> bool:
        if moment is None:
            return self._from is None and self._to is None
        return (self._from is None or moment >= self._from) and (self._to is None or moment <= self._to)

    def tally(self, moment: datetime | None) -> Tally | None:
        """Return the tally of a record's interval; None if no intervals are requested."""
        if not self._step or moment is None:
            return None
        if not self.intervals:
            begin = self._from or moment.replace(second=0, microsecond=0)
            self.intervals.append(CountedInterval(begin, begin + self._step, Tally()))
        while moment >= self.intervals[-1].end:
            begin = self.intervals[-1].end + (moment - self.intervals[-1].end) // self._step * self._step
            self.intervals.append(CountedInterval(begin, begin + self._step, Tally()))
        for each in reversed(self.intervals):
            if each.begin <= moment < each.end:
                return each.tally
        return self.intervals[0].tally


def _count_file(session: LogdumpSession, file: InspectedFile, result: Counted, span: _Span, tables: str) -> None:
    walk = Walk(file)
    large = _Large(session, result)
    plain = file.ours and not tables and span.everything and not session.large.maxlen and not session.notify
    if plain and not (session.filters.any and session.filters.enabled):
        _count_plainly(session, walk, result, span, large)
    scanned = 0
    while (seen := walk.step()) is not None:
        if seen.fault:
            large.after_damage()
        if not seen.size:
            result.damaged.append(Lost(file, seen.rba, seen.fault))
            good = file.good_behind(seen.rba + 1)
            if good is None:
                break
            walk.place = good.rba
            continue
        _count_record(session, walk, seen, result, span, tables, large)
        scanned += 1
        if session.notify and not scanned % session.notify:
            _notice(session, seen, scanned)
        session.tell(seen)
    large.end()


def _notice(session: LogdumpSession, seen: InspectedRecord, scanned: int) -> None:
    moment = session.display.time(seen.record.io_time) if seen.record is not None else ""
    text = f"Scanned {scanned} records, RBA {seen.rba},{moment}"
    if session.one_line and session.progress is not None:
        session.progress.line(text)
    else:
        session.aside(Lines((text,)))


def _count_plainly(session: LogdumpSession, walk: Walk, result: Counted, span: _Span, large: _Large) -> None:
    """Count chunk by chunk up to the first damage, if any; the caller counts the rest record by record."""
    header = walk.step()
    if header is not None and header.size:
        _count_record(session, walk, header, result, span, "", large)

    def other(place: int) -> None:
        seen = walk.file.at(place)
        if seen is not None:
            _count_record(session, walk, seen, result, span, "", large)

    fast = FastCount(walk.file, result, other, session.progress)
    walk.place = fast.count(walk.place)
    if fast.open:
        tables = [walk.file.table(index, walk.place) for index in fast.open_tables]
        large.resume(walk.place, {table.name if table is not None else "" for table in tables})


def _count_record(
    session: LogdumpSession, walk: Walk, seen: InspectedRecord, result: Counted, span: _Span, tables: str, large: _Large
) -> None:
    record = seen.record
    if seen.fault:
        result.damaged.append(Lost(walk.file, seen.rba, seen.fault))
    if record is None:
        kind = iotypes.FILE_HEADER if seen.is_header else _OTHERS
        if not tables and not (session.filters.any and session.filters.enabled) and span.holds(None):
            result.total.add(kind, seen.size, "")
            result.tables.setdefault("*FileHeader*", Tally()).add(kind, seen.size, "")
        return
    candidate = walk.candidate(seen)
    if candidate is None or not span.holds(record.io_time) or not session.filters.passes(candidate):
        return
    if tables and not fnmatchcase(candidate.table.upper(), tables.upper()):
        return
    kind, size = iotypes.io_type_name(record.io_type), len(record.data)
    image = "" if not is_row(record) else "Before" if record.before_after == "B" else "After"
    for tally in (
        result.total,
        result.tables.setdefault(candidate.table or "*None*", Tally()),
        span.tally(record.io_time),
    ):
        if tally is not None:
            tally.add(kind, size, image)
    if is_row(record):
        large.add(walk, seen, candidate, size)


class _Large:
    """Counts transactions and their sizes, and collects the large ones for TRANSHIST."""

    def __init__(self, session: LogdumpSession, result: Counted) -> None:
        self._session = session
        self._result = result
        self._now: TransactionSize | None = None
        self._tables: set[str] = set()
        self._doubtful = False
        """Whether damage may have hidden the end of the open transaction."""

    def resume(self, rba: int, tables: set[str]) -> None:
        """Continue a transaction of these tables that is open at a place; its records were counted before."""
        self._now, self._tables = TransactionSize("", 0, 0, rba), tables

    def after_damage(self) -> None:
        """Records may be missing here: a row that begins a transaction ends the open one."""
        self._doubtful = True

    def add(self, walk: Walk, seen: InspectedRecord, candidate: FilterCandidate, size: int) -> None:
        if self._doubtful and candidate.record.trans_ind in BEGINNINGS:
            self.end()
        self._doubtful = False
        now = self._now
        if now is None:
            now = TransactionSize(candidate.identity().xid, 0, 0, seen.rba)
        whole = candidate.record.io_type != IoType.RECORD_FRAGMENT
        self._now = now._replace(records=now.records + whole, size=now.size + size)
        self._tables.add(candidate.table)
        if walk.is_boundary(seen):
            self.end()

    def end(self) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        result, session = self._result, self._session
        result.transactions += 1
        result.transaction_records += now.records
        result.transaction_bytes += now.size
        result.transaction_tables += len(self._tables)
        self._tables.clear()
        if session.large.maxlen and (now.records >= session.record_limit or now.size >= session.byte_limit):
            session.large.append(now)


CHUNK: Final = 2 << 20
_SIDES = ("After", "Before")
_TABLES = 1 << 16


class FastCount:
    """Counts rows from a place up to the first damaged or incomplete record.

    For each record that is not a row, it calls ``other`` with the record's place."""

    def __init__(
        self,
        file: InspectedFile,
        result: Counted,
        other: Callable[[int], None],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._file = file
        self._progress = progress
        self._result = result
        self._other = other
        self.open = False
        """Whether the last chunk left a transaction open."""
        self.open_tables: set[int] = set()
        """The indexes of that transaction's tables."""

    def count(self, place: int) -> int:
        """Count from a place on; return the place after the last counted record."""
        size = CHUNK
        while place < self._file.size:
            chunk = self._file.read(size, place)
            records = decode.good_records(chunk, self._file.path, place)
            if not records.end:
                if records.fault is not None or len(chunk) < size:
                    break
                size *= 2
                continue
            self._take(records, place)
            place += records.end
            if self._progress is not None:
                self._progress(place, self._file.size)
        return place

    def _take(self, records: Records, base: int) -> None:
        is_row = records.is_row
        for place in (records.start[~is_row] + base).tolist():
            self._other(place)
        rows = records.only(is_row)
        if not len(rows.start):
            return
        header = rows.header
        before = header["before_after"] == ord("B")
        key = (header["table"].astype(np.int64) << 9) | (header["io_type"].astype(np.int64) << 1) | before
        kinds, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        sizes = np.bincount(inverse, weights=rows.data_length).astype(np.int64)
        last = int(rows.start[-1]) + base
        for kind, number, size in zip(kinds.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            table = self._file.table(kind >> 9, last)
            name = table.name if table is not None else "*None*"
            operation, side = iotypes.io_type_name(kind >> 1 & 0xFF), _SIDES[kind & 1]
            for tally in (self._result.total, self._result.tables.setdefault(name, Tally())):
                tally.add_many(operation, number, size, side)
        self._transactions(rows, header["table"].astype(np.int64))

    def _transactions(self, rows: Records, table: NDArray[np.int64]) -> None:
        ends = rows.header["trans_ind"] >= TransInd.END
        number: NDArray[np.int64] = np.cumsum(ends) - ends
        result = self._result
        result.transaction_records += int((rows.header["io_type"] != IoType.RECORD_FRAGMENT).sum())
        result.transaction_bytes += int(rows.data_length.sum())
        whole = int(ends.sum())
        result.transactions += whole
        pairs = np.unique(number * _TABLES + table)
        first = {int(pair) for pair in (pairs[pairs < _TABLES]).tolist()} | self.open_tables
        tables = len(pairs) - int((pairs < _TABLES).sum()) + len(first)
        still_open = not bool(ends[-1])
        left = {int(pair) % _TABLES for pair in pairs[pairs >= whole * _TABLES].tolist()} if still_open else set()
        if still_open:
            left |= self.open_tables if not whole else set()
            tables -= len(left)
        result.transaction_tables += tables
        self.open_tables, self.open = left, still_open
