"""Counters of operations by table, in the sections that STATS shows: since the start, this day, this hour, the last reset."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ggshell.clock import Clock, to_datetime
from ggshell.record import IoType
from ggshell.types import TableName


class Section(StrEnum):
    """A period that STATS counts."""

    TOTAL = "total"
    DAILY = "daily"
    HOURLY = "hourly"
    LATEST = "latest"


KINDS = ("inserts", "updates", "deletes", "upserts", "truncates", "discards")
_KIND_OF = {IoType.INSERT: "inserts", IoType.DELETE: "deletes", IoType.PURGE_DATA: "truncates"}

Counts = dict[tuple[str, str], dict[str, int]]


class Statistics:
    """Counts for one process; days and hours begin at the local clock's boundaries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        now = clock.now()
        self._since: dict[Section, int] = dict.fromkeys(Section, now)
        self._counts: dict[Section, Counts] = {section: {} for section in Section}
        self._day, self._hour = self._boundaries(now)

    def add(self, source: TableName, target: TableName, io_type: int, count: int) -> None:
        """Count operations of one kind on one table."""
        self._turn()
        kind = _KIND_OF.get(IoType(io_type), "updates")
        key = (str(source), str(target))
        for counts in self._counts.values():
            table = counts.get(key)
            if table is None:
                table = counts[key] = dict.fromkeys(KINDS, 0)
            table[kind] += count

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
            "sections": {section.value: self._since[section] for section in Section},
            "tables": [
                {
                    "source": source,
                    "target": target,
                    "counts": {
                        section.value: self._counts[section].get((source, target), dict.fromkeys(KINDS, 0))
                        for section in Section
                    },
                }
                for source, target in names
            ],
        }

    def _turn(self) -> None:
        now = self._clock.now()
        day, hour = self._boundaries(now)
        if day != self._day:
            self._day, self._counts[Section.DAILY], self._since[Section.DAILY] = day, {}, day
        if hour != self._hour:
            self._hour, self._counts[Section.HOURLY], self._since[Section.HOURLY] = hour, {}, hour

    @staticmethod
    def _boundaries(now: int) -> tuple[int, int]:
        moment = to_datetime(now).astimezone().replace(minute=0, second=0, microsecond=0)
        return int(moment.replace(hour=0).timestamp() * 1e6), int(moment.timestamp() * 1e6)
