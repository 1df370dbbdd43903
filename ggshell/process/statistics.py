"""Counters of operations by table, in the sections that STATS shows: since the start, this day, this hour, the last reset."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from ggshell.clock import Clock, to_datetime
from ggshell.process.lag_stats import LagStats
from ggshell.record.operation import IoType
from ggshell.types import TableName


class Section(StrEnum):
    """A period that STATS counts."""

    TOTAL = "total"
    DAILY = "daily"
    HOURLY = "hourly"
    LATEST = "latest"


KINDS = ("inserts", "updates", "deletes", "upserts", "truncates", "discards")
_KIND_OF: dict[int, str] = {IoType.INSERT: "inserts", IoType.DELETE: "deletes", IoType.PURGE_DATA: "truncates"}
_HOUR = 3_600_000_000

Counts = dict[tuple[str, str], dict[str, int]]


class Statistics:
    """Counts for one process; days and hours begin at the local clock's boundaries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        now = clock.now()
        self._since: dict[Section, int] = dict.fromkeys(Section, now)
        self._counts: dict[Section, Counts] = {section: {} for section in Section}
        self._names: dict[tuple[TableName, TableName], tuple[str, str]] = {}
        self._day, self._hour = _boundaries(now)
        self._apart: Callable[[TableName], bool] = lambda _: False
        self._heartbeats = 0
        self.lag_stats: LagStats | None = None

    def set_apart(self, is_heartbeat: Callable[[TableName], bool]) -> None:
        """Count operations on these tables as heartbeats, and not as anybody's rows."""
        self._apart = is_heartbeat

    def add(self, source: TableName, target: TableName, io_type: int, count: int) -> None:
        """Count operations of one kind on one table."""
        if self._apart(source):
            self._heartbeats += count
            return
        self._count(source, target, _KIND_OF.get(io_type, "updates"), count)

    def upsert(self, source: TableName, target: TableName, count: int = 1) -> None:
        """Count operations that were applied as an upsert."""
        self._count(source, target, "upserts", count)

    def discard(self, source: TableName, target: TableName, io_type: int, count: int = 1) -> None:
        """Count operations that went to the discard file instead of the target, whatever they were."""
        self._count(source, target, "discards", count)

    @property
    def operations(self) -> int:
        """All operations since the start."""
        return sum(sum(table.values()) for table in self._counts[Section.TOTAL].values())

    def reset(self) -> None:
        """Begin the LATEST section anew."""
        self._counts[Section.LATEST] = {}
        self._since[Section.LATEST] = self._clock.now()

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain data: per section its begin (microseconds since 1970) and the tables' counts."""
        self._turn()
        names = sorted(self._counts[Section.TOTAL])
        return {
            "now": self._clock.now(),
            "heartbeats": self._heartbeats,
            "delivered": self.lag_stats.snapshot() if self.lag_stats is not None else [],
            "sections": {section.value: self._since[section] for section in Section},
            "tables": [
                {
                    "source": source,
                    "target": target,
                    "counts": {
                        section.value: dict(self._counts[section].get((source, target)) or dict.fromkeys(KINDS, 0))
                        for section in Section
                    },
                }
                for source, target in names
            ],
        }

    def _count(self, source: TableName, target: TableName, kind: str, count: int) -> None:
        self._turn()
        key = self._names.get((source, target))
        if key is None:
            key = self._names[source, target] = (str(source), str(target))
        for counts in self._counts.values():
            table = counts.get(key)
            if table is None:
                table = counts[key] = dict.fromkeys(KINDS, 0)
            table[kind] += count

    def _turn(self) -> None:
        """Begin a new hour, and perhaps a new day.  Most calls end at the first line: this runs for every batch."""
        now = self._clock.now()
        if now < self._hour + _HOUR:
            return
        day, self._hour = _boundaries(now)
        self._counts[Section.HOURLY], self._since[Section.HOURLY] = {}, self._hour
        if day != self._day:
            self._day, self._counts[Section.DAILY], self._since[Section.DAILY] = day, {}, day


def _boundaries(now: int) -> tuple[int, int]:
    """The beginnings of the local day and hour."""
    moment = to_datetime(now).astimezone().replace(minute=0, second=0, microsecond=0)
    midnight = moment.replace(hour=0, tzinfo=None).astimezone()
    return int(midnight.timestamp() * 1e6), int(moment.timestamp() * 1e6)
