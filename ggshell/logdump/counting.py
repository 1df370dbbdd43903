"""COUNT: records by type, table, interval and transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from ggshell.errors import NotFoundError
from ggshell.logdump.answers import Answer, Counted, Interval, Lines, Lost, Tally, TransactionSize
from ggshell.logdump.display import Display
from ggshell.logdump.fast_count import FastCount
from ggshell.logdump.filters import Candidate
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session
from ggshell.logdump.walk import Walk, is_row
from ggshell.record.operation import IoType
from ggshell.trail import iotypes
from ggshell.trail.look import LookedFile, Seen

_OTHERS = "*Others*"


@action("COUNT")
def count(
    session: Session,
    *,
    starttime: str = "",
    endtime: str = "",
    interval: int = 0,
    logtrail: str = "",
    file: str = "",
    detail: bool = False,
) -> Iterator[Answer]:
    """Count the open file, or files by a pattern, from beginning to end; damage is passed over, and told."""
    span = _Span(session.display, starttime, endtime, interval)
    if logtrail:
        pattern = Path(logtrail)
        paths = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_file())
        if not paths:
            raise NotFoundError(f"no file is called {logtrail}")
        result = Counted([str(path) for path in paths], detail=detail)
        for path in paths:
            looked = LookedFile(path)
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
    """The time that counts, in intervals where asked for."""

    def __init__(self, display: Display, start: str, end: str, minutes: int) -> None:
        self._from = display.moment(start) if start else None
        self._to = display.moment(end) if end else None
        self._step = timedelta(minutes=minutes)
        self.intervals: list[Interval] = []

    @property
    def everything(self) -> bool:
        return self._from is None and self._to is None and not self._step

    def holds(self, moment: datetime | None) -> bool:
        if moment is None:
            return self._from is None and self._to is None
        return (self._from is None or moment >= self._from) and (self._to is None or moment <= self._to)

    def tally(self, moment: datetime | None) -> Tally | None:
        """The interval that a record belongs to; None where nobody asked for any."""
        if not self._step or moment is None:
            return None
        if not self.intervals:
            begin = self._from or moment.replace(second=0, microsecond=0)
            self.intervals.append(Interval(begin, begin + self._step, Tally()))
        while moment >= self.intervals[-1].end:
            begin = self.intervals[-1].end + (moment - self.intervals[-1].end) // self._step * self._step
            self.intervals.append(Interval(begin, begin + self._step, Tally()))
        for each in reversed(self.intervals):
            if each.begin <= moment < each.end:
                return each.tally
        return self.intervals[0].tally


def _count_file(session: Session, file: LookedFile, result: Counted, span: _Span, tables: str) -> None:
    walk = Walk(file)
    large = _Large(session, result)
    plain = file.ours and not tables and span.everything and not session.large.maxlen and not session.notify
    if plain and not (session.filters.any and session.filters.enabled):
        _count_plainly(session, walk, result, span, large)
    scanned = 0
    while (seen := walk.step()) is not None:
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


def _notice(session: Session, seen: Seen, scanned: int) -> None:
    moment = session.display.time(seen.record.io_time) if seen.record is not None else ""
    text = f"Scanned {scanned} records, RBA {seen.rba},{moment}"
    if session.one_line and session.progress is not None:
        session.progress.line(text)
    else:
        session.aside(Lines((text,)))


def _count_plainly(session: Session, walk: Walk, result: Counted, span: _Span, large: _Large) -> None:
    """Chunk by chunk up to the first damage, if there is any: the rest goes record by record."""
    header = walk.step()
    if header is not None and header.size:
        _count_record(session, walk, header, result, span, "", large)

    def other(place: int) -> None:
        seen = walk.file.at(place)
        if seen is not None:
            _count_record(session, walk, seen, result, span, "", large)

    fast = FastCount(walk.file, result, other, session.progress)
    walk.place = fast.count(walk.place)
    fast.end()


def _count_record(
    session: Session, walk: Walk, seen: Seen, result: Counted, span: _Span, tables: str, large: _Large
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
    """Transactions one after the other: how many, how large on average, and the large ones for TRANSHIST."""

    def __init__(self, session: Session, result: Counted) -> None:
        self._session = session
        self._result = result
        self._now: TransactionSize | None = None
        self._tables: set[str] = set()

    def add(self, walk: Walk, seen: Seen, candidate: Candidate, size: int) -> None:
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
