"""Answers about heartbeats, and the warnings that go with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from ggshell.heartbeat.history import Objective, Spread
from ggshell.heartbeat.lags import Lag, Way
from ggshell.heartbeat.offset import Offset, estimate
from ggshell.shell.results import Note, Row, moment


class JobLine(NamedTuple):
    """A job; times in microseconds since 1970, 0 for never."""

    name: str
    every: Decimal
    retention_days: int | None
    last_run: int
    next_run: int
    runs: int


class HeartbeatInfo(NamedTuple):
    """INFO HEARTBEATTABLE; ``frequency`` in seconds, None where the database sends no heartbeats."""

    tables: tuple[str, ...]
    frequency: Decimal | None
    purge_days: int
    retention_days: int
    partitioned: bool
    jobs: tuple[JobLine, ...]
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("job", "every_seconds", "retention_days", "last_run", "next_run", "runs")

    @property
    def rows(self) -> list[Row]:
        return [
            (job.name, float(job.every), job.retention_days, moment(job.last_run), moment(job.next_run), job.runs)
            for job in self.jobs
        ]


class WayLag(NamedTuple):
    """A way with what its clocks are thought to differ by."""

    lag: Lag
    offset: Offset | None


class HeartbeatLags(NamedTuple):
    """LAG HEARTBEAT; ``here``: the database's clock against this host's."""

    ways: tuple[WayLag, ...]
    here: Offset | None = None
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        parts = tuple(f"{side}_{name}" for side in ("incoming", "outgoing") for name in _FIELDS)
        return ("local_database", "remote_database", *parts, "remote_clock_lead", "uncertainty")

    @property
    def rows(self) -> list[Row]:
        found: list[Row] = []
        for lag, offset in self.ways:
            sides: list[object] = []
            for side in (lag.incoming, lag.outgoing):
                sides += [side.path or None, side.age, side.parts.total, *side.parts]
            clocks = (offset.lead, offset.error) if offset is not None else (None, None)
            found.append((lag.beat.local_database, lag.beat.remote_database, *sides, *clocks))
        return found


_FIELDS = ("path", "age", "lag", "extract_lag", "routing_lag", "read_lag", "apply_lag")


class LagTimes(NamedTuple):
    """LAG HEARTBEAT … HISTORY."""

    spreads: tuple[Spread, ...]
    period: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("begin", "remote_database", "path", "hop", "count", "p50", "p95", "p99", "max")

    @property
    def rows(self) -> list[Row]:
        return [(moment(each.begin), *each[1:]) for each in self.spreads]


class LagObjective(NamedTuple):
    """LAG HEARTBEAT … SLO."""

    objectives: tuple[Objective, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("remote_database", "path", "goal", "limit", "count", "within", "share", "budget_left", "held")

    @property
    def rows(self) -> list[Row]:
        return [(*each, each.share, each.left, each.held) for each in self.objectives]


def offset_of(lag: Lag, least: Mapping[Way, tuple[float | None, float | None]]) -> Offset | None:
    """The remote clock's lead, by the quickest heartbeats of each direction; None while one direction is unknown."""
    beat = lag.beat
    seen = least.get((beat.remote_database, beat.incoming_extract, beat.incoming_routing_path, beat.incoming_replicat))
    ins, outs = [lag.incoming.parts.total], [lag.outgoing.parts.total]
    if seen is not None:
        ins.append(seen[0])
        outs.append(seen[1])
    return estimate([each for each in ins if each is not None], [each for each in outs if each is not None])


def clock_warnings(lags: Iterable[Lag]) -> list[Note]:
    """One warning for each way with a negative part."""
    notes: list[Note] = []
    for lag in lags:
        if lag.negative:
            told = ", ".join(f"{name} {seconds:.6f} s" for name, seconds in lag.negative)
            text = (
                f"Negative lag from {lag.beat.remote_database} ({lag.incoming.path}): {told}. The hosts' clocks differ."
            )
            notes.append(Note("GGS-00652", text))
    return notes
