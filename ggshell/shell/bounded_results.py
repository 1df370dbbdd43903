"""What Bounded Recovery, open transactions and the cache of an Extract answer.  The same kind of values as ``results``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.shell.results import Row, moment


class BoundedStatus(NamedTuple):
    """SEND EXTRACT … BR: the request and Bounded Recovery's facts after it."""

    group: str
    request: str
    answer: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            *(
                "extract",
                "status",
                "interval_seconds",
                "last_number",
                "last_time",
                "next_time",
                "forced_time",
                "objects",
            ),
            *("state_bytes", "data_bytes", "outstanding", "outstanding_bytes", "failure"),
            *("checkpoints", "failed", "objects_written", "objects_kept", "bytes_written", "microseconds"),
        )

    @property
    def rows(self) -> list[Row]:
        found, counts = self.answer, self.answer.get("counts") or {}
        return [
            (
                *(self.group, found["status"], found["interval"], found["last_number"]),
                *(moment(found[name]) for name in ("last_time", "next_time", "forced_time")),
                *(found[name] for name in ("objects", "state", "data", "outstanding", "outstanding_data")),
                found["failure"] or None,
                *(counts.get(name) for name in self.columns[-6:]),
            )
        ]


class CacheStats(NamedTuple):
    """SEND EXTRACT … CACHEMGR CACHESTATS."""

    group: str
    facts: Mapping[str, int]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", *self.facts)

    @property
    def rows(self) -> list[Row]:
        return [(self.group, *self.facts.values())]


class Bar(NamedTuple):
    """An open transaction in the timeline, by the log's time in microseconds since 1970."""

    name: str
    begin: int
    persisted: bool
    dirty: bool = False
    items: int | None = None


class Timeline(NamedTuple):
    """BR SHOW.  ``restart``: where a restart would begin to read, and why; times in microseconds, 0 where not known."""

    group: str
    end: int
    bars: tuple[Bar, ...]
    checkpoint: int
    number: int
    interval: int
    restart: int
    restart_sequence: int
    end_sequence: int
    reason: str
    running: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", "transaction", "begin", "persisted", "dirty", "items", "restart", "checkpoint", "log_end")

    @property
    def rows(self) -> list[Row]:
        ends = (moment(self.restart), moment(self.checkpoint), moment(self.end))
        if not self.bars:
            return [(self.group, None, None, None, None, None, *ends)]
        return [(self.group, b.name, moment(b.begin), b.persisted, b.dirty, b.items, *ends) for b in self.bars]
