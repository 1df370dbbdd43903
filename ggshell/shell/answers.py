"""What running processes answer: lag, statistics, status, open transactions.  The same kind of values as ``results``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.errors import GgsError
from ggshell.shell.group_results import SlotFacts
from ggshell.shell.results import Note, Row, moment, seconds


class GroupLag(NamedTuple):
    """The lag of one group; ``asked``: the running process said so, else it was worked out from files (``known``: and these
    could be read)."""

    type: str
    group: str
    lag: int | None
    at_end: bool
    asked: bool = True
    status: str = "RUNNING"
    known: bool = True


class Lags(NamedTuple):
    """LAG and SEND … GETLAG."""

    groups: tuple[GroupLag, ...]
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "status", "lag_seconds", "at_end")

    @property
    def rows(self) -> list[Row]:
        return [(g.type, g.group, g.status, seconds(g.lag), g.at_end) for g in self.groups]


class TableCounts(NamedTuple):
    """Operations of one table pair: section -> kind -> count."""

    source: str
    target: str
    counts: Mapping[str, Mapping[str, int]]


class GroupStatistics(NamedTuple):
    """STATS of one group: ``since`` the begin of each section, ``outputs`` the trails it writes,
    ``heartbeats`` how many of them passed since the start, which no table counts; ``delivered`` what LAGSTATS counted."""

    type: str
    group: str
    now: int
    since: Mapping[str, int]
    tables: tuple[TableCounts, ...]
    outputs: tuple[str, ...] = ()
    heartbeats: int = 0
    delivered: tuple[str, ...] = ()


class Stats(NamedTuple):
    """STATS; ``rate`` is the unit of REPORTRATE (HR, MIN, SEC) or empty."""

    groups: tuple[GroupStatistics, ...]
    sections: tuple[str, ...]
    rate: str = ""
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "section", "since", "source", "target", *COUNTED, "operations")

    @property
    def rows(self) -> list[Row]:
        return [
            (
                *(group.type, group.group, section, moment(group.since[section]), table.source, table.target),
                *(table.counts[section].get(kind, 0) for kind in COUNTED),
                operations(table.counts[section]),
            )
            for group in self.groups
            for table in group.tables
            for section in self.sections
        ]


def operations(counts: Mapping[str, int]) -> int:
    """All operations of a period; discarded ones were none."""
    return sum(counts.get(kind, 0) for kind in COUNTED if kind != "discards")


COUNTED = ("inserts", "updates", "deletes", "upserts", "truncates", "discards")


class ProcessStatus(NamedTuple):
    """SEND … STATUS of one group: its own words and positions."""

    type: str
    group: str
    answer: Mapping[str, Any]
    slot: SlotFacts | None = None


class ProcessStatuses(NamedTuple):
    """SEND … STATUS."""

    groups: tuple[ProcessStatus, ...]
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "pid", "status", "seqno", "rba", "lsn", "timestamp", "wal_bytes_held")

    @property
    def rows(self) -> list[Row]:
        found: list[Row] = []
        for group in self.groups:
            answer, read = group.answer, group.answer.get("read") or {}
            place = (
                read.get("seqno", read.get("sequence")),
                read.get("rba"),
                read.get("lsn"),
                moment(read.get("timestamp") or 0),
            )
            held = group.slot.retained if group.slot else None
            found.append((group.type, group.group, answer.get("pid"), answer.get("status"), *place, held))
        return found


class Transactions(NamedTuple):
    """SEND … SHOWTRANS: the open transactions of an Extract, as the process gives them."""

    group: str
    transactions: tuple[Mapping[str, Any], ...]
    tabular: bool = False
    restart: Mapping[str, Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", *self._keys())

    def _keys(self) -> tuple[str, ...]:
        """PostgreSQL's log has LSNs, Oracle's SCNs and places in files."""
        redo = any("scn" in found for found in self.transactions)
        return ("xid", "items", "start_time", *(("scn", "thread", "seqno", "rba") if redo else ("lsn",)), "status")

    @property
    def rows(self) -> list[Row]:
        keys = self._keys()
        return [(self.group, *(found.get(key) for key in keys)) for found in self.transactions]
