"""Counters of operations by table, in the sections of STATS: since the start, this day, this hour, since the last reset.

DDL statements are counted separately, by scope and since the start only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ggshell.clock import Clock, to_datetime
from ggshell.durations import HOUR, MICROSECONDS
from ggshell.monitoring.lag_stats import LagStats
from ggshell.record.ddl_rules import DdlScope
from ggshell.record.operation import IoType
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.record.change import ChangeBatch


class Section(StrEnum):
    """A period for which STATS shows counts."""

    TOTAL = "total"
    DAILY = "daily"
    HOURLY = "hourly"
    LATEST = "latest"


KINDS = ("inserts", "updates", "deletes", "upserts", "truncates", "discards", "ignores")
CONFLICTS = ("INSERTROWEXISTS", "UPDATEROWEXISTS", "UPDATEROWMISSING", "DELETEROWEXISTS", "DELETEROWMISSING")
"""The types of conflicts, which are counted in addition to the operations, with whether they were resolved."""
DDL_KINDS = ("mapped", "unmapped", "other", "excluded")
"""The counters of DDL statements: by scope, and those that the parameter DDL excludes, which are not counted by scope."""
DDL_ERRORS = ("errors", "retried", "discarded", "ignored")
"""The counters of DDL statements that a target refused, and of the responses of DDLERROR."""
SUCCEEDED, FAILED = "succeeded", "failed"
_KIND_OF: dict[int, str] = {IoType.INSERT: "inserts", IoType.DELETE: "deletes", IoType.PURGE_DATA: "truncates"}
_HOUR = HOUR * MICROSECONDS

Counts = dict[tuple[str, str], dict[str, int]]


class Statistics:
    """The counts of one process; days and hours begin in local time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        now = clock.now()
        self._since: dict[Section, int] = dict.fromkeys(Section, now)
        self._counts: dict[Section, Counts] = {section: {} for section in Section}
        self._names: dict[tuple[TableName, TableName], tuple[str, str]] = {}
        self._day, self._hour = _boundaries(now)
        self._apart: Callable[[TableName], bool] = lambda _: False
        self._selects: Callable[[TableName], bool] = lambda _: True
        self._ddl: dict[str, int] = dict.fromkeys((*DDL_KINDS, *DDL_ERRORS), 0)
        self._heartbeats = 0
        self.lag_stats: LagStats | None = None
        self.not_captured: Mapping[str, str] = {}
        """The tables that should be captured but are not, with the reason."""

    def set_apart(self, is_heartbeat: Callable[[TableName], bool]) -> None:
        """Count operations on these tables as heartbeats, not as rows."""
        self._apart = is_heartbeat

    def set_selection(self, selects: Callable[[TableName], bool]) -> None:
        """Take a DDL statement for MAPPED if TABLE or MAP selects its object."""
        self._selects = selects

    def ddl(self, scope: DdlScope, count: int = 1, *, excluded: bool = False) -> None:
        """Count DDL statements of a scope, or statements that the parameter DDL excludes."""
        self._ddl["excluded" if excluded else scope.lower()] += count

    def ddl_retried(self) -> None:
        """Count a DDL statement that was refused and is tried again."""
        self._ddl["errors"] += 1
        self._ddl["retried"] += 1

    def _ddl_on(self, name: TableName) -> DdlScope:
        if not (name.owner and name.name):
            return DdlScope.OTHER
        return DdlScope.MAPPED if self._selects(name) else DdlScope.UNMAPPED

    def add(self, source: TableName, target: TableName, io_type: int, count: int) -> None:
        """Count operations of one kind on one table, or DDL statements on one object."""
        if io_type == IoType.DDL:
            self.ddl(self._ddl_on(source), count)
            return
        if self._apart(source):
            self._heartbeats += count
            return
        self._count(source, target, _KIND_OF.get(io_type, "updates"), count)

    def take_back(self, source: TableName, target: TableName, io_type: int, count: int) -> None:
        """Subtract operations that were counted with ``add`` but not kept; they will be counted again."""
        if io_type == IoType.DDL:
            self.ddl(self._ddl_on(source), -count)
            return
        if self._apart(source):
            self._heartbeats -= count
            return
        self._count(source, target, _KIND_OF.get(io_type, "updates"), -count)

    def upsert(self, source: TableName, target: TableName, count: int = 1) -> None:
        """Count operations that were applied as an upsert."""
        self._count(source, target, "upserts", count)

    def discard(self, source: TableName, target: TableName, io_type: int, count: int = 1) -> None:
        """Count operations of any type that went to the discard file instead of the target."""
        if io_type == IoType.DDL:
            self._refuse("discarded", source, count)
            return
        self._count(source, target, "discards", count)

    def ignore(self, source: TableName, target: TableName, io_type: int, count: int = 1) -> None:
        """Count operations of any type that the target refused and REPERROR or DDLERROR ignores."""
        if io_type == IoType.DDL:
            self._refuse("ignored", source, count)
            return
        self._count(source, target, "ignores", count)

    def _refuse(self, response: str, source: TableName, count: int) -> None:
        """Count DDL statements that the target refused."""
        self.ddl(self._ddl_on(source), count)
        self._ddl["errors"] += count
        self._ddl[response] += count

    def conflict(self, source: TableName, target: TableName, conflict: str, *, resolved: bool) -> None:
        """Count a conflict by its type, and whether RESOLVECONFLICT resolved it."""
        self._count(source, target, conflict, 1)
        self._count(source, target, SUCCEEDED if resolved else FAILED, 1)

    @property
    def operations(self) -> int:
        """All operations on rows since the start."""
        return sum(table[kind] for table in self._counts[Section.TOTAL].values() for kind in KINDS)

    def reset(self) -> None:
        """Reset the LATEST section."""
        self._counts[Section.LATEST] = {}
        self._since[Section.LATEST] = self._clock.now()

    def snapshot(self) -> dict[str, Any]:
        """Return plain data: the begin of each section (microseconds since 1970) and the counts of the tables.

        ``ddl``: the counts of DDL statements; empty if there were none.
        """
        self._turn()
        names = sorted(self._counts[Section.TOTAL])
        return {
            "now": self._clock.now(),
            "heartbeats": self._heartbeats,
            "delivered": self.lag_stats.snapshot() if self.lag_stats is not None else [],
            "not_captured": dict(self.not_captured),
            "ddl": dict(self._ddl) if any(self._ddl.values()) else {},
            "sections": {section.value: self._since[section] for section in Section},
            "tables": [
                {
                    "source": source,
                    "target": target,
                    "counts": {section.value: self._shown(section, (source, target), KINDS) for section in Section},
                    "conflicts": {
                        section.value: self._shown(section, (source, target), (SUCCEEDED, FAILED, *CONFLICTS))
                        for section in Section
                    },
                }
                for source, target in names
            ],
        }

    def _shown(self, section: Section, key: tuple[str, str], kinds: tuple[str, ...]) -> dict[str, int]:
        counts = self._counts[section].get(key, {})
        return {kind: counts.get(kind, 0) for kind in kinds}

    def _count(self, source: TableName, target: TableName, kind: str, count: int) -> None:
        self._turn()
        key = self._names.get((source, target))
        if key is None:
            key = self._names[source, target] = (str(source), str(target))
        for counts in self._counts.values():
            table = counts.get(key)
            if table is None:
                table = counts[key] = dict.fromkeys(KINDS, 0)
            table[kind] = max(0, table.get(kind, 0) + count)  # it may have been added in an earlier hour

    def _turn(self) -> None:
        """Begin a new hour or day if necessary. This runs for every batch and usually returns after one comparison."""
        now = self._clock.now()
        if now < self._hour + _HOUR:
            return
        day, self._hour = _boundaries(now)
        self._counts[Section.HOURLY], self._since[Section.HOURLY] = {}, self._hour
        if day != self._day:
            self._day, self._counts[Section.DAILY], self._since[Section.DAILY] = day, {}, day


_FEW = 16


def tally(batch: ChangeBatch) -> Iterator[tuple[TableName, int, int]]:
    """Return (table, operation type, rows) of a batch in one pass. Before images do not count as operations."""
    import numpy as np  # late: commands import the names of the counters

    if batch.befores is not None:
        batch = batch.take(np.flatnonzero(~batch.befores), batch.pieces)
    if len(batch) <= _FEW:
        counts: dict[tuple[int, int], int] = {}
        for pair in zip(batch.table.tolist(), batch.io_type.tolist(), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
        for (table, io_type), number in counts.items():
            yield batch.tables[table].name, io_type, number
        return
    numbers = np.bincount(batch.table.astype(np.int64) << 8 | batch.io_type)  # a batch has few tables
    for code in np.flatnonzero(numbers).tolist():
        yield batch.tables[code >> 8].name, code & 0xFF, int(numbers[code])


def conflict_counts(found: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the labels and counts of conflicts for STATS … REPORTCDR and the report; empty if there were none."""
    total = found.get(SUCCEEDED, 0) + found.get(FAILED, 0)
    if not total:
        return []
    outcomes = [(f"CDR resolutions {kind}", found.get(kind, 0)) for kind in (SUCCEEDED, FAILED)]
    types = [(f"CDR {kind} conflicts", found.get(kind, 0)) for kind in CONFLICTS]
    return [("Total CDR conflicts", total), *outcomes, *types]


def ddl_operations(found: Mapping[str, int]) -> int:
    """Return the number of DDL statements, with those that the parameter DDL excludes."""
    return sum(found.get(kind, 0) for kind in DDL_KINDS)


def ddl_counts(found: Mapping[str, int], *, replicat: bool) -> list[tuple[str, int]]:
    """Return the labels and counts of DDL statements for STATS and the report; empty if there were none."""
    if not any(found.values()):
        return []
    kinds = [(f"{kind.capitalize()} operations", found.get(kind, 0)) for kind in DDL_KINDS]
    errors = [(f"{kind.capitalize()} errors", found.get(kind, 0)) for kind in DDL_ERRORS[1:]]
    return [
        ("Operations", ddl_operations(found)),
        *kinds,
        *([("Errors", found["errors"]), *errors] if replicat else []),
    ]


def _boundaries(now: int) -> tuple[int, int]:
    """Return the beginning of the local day and of the local hour, in microseconds since 1970."""
    moment = to_datetime(now).astimezone().replace(minute=0, second=0, microsecond=0)
    midnight = moment.replace(hour=0, tzinfo=None).astimezone()
    return int(midnight.timestamp() * 1e6), int(moment.timestamp() * 1e6)
