"""Results of heartbeat commands, and their warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from ggshell.cli.output.tables import table_text
from ggshell.cli.output.units import moment
from ggshell.cli.results import Note, Row
from ggshell.clock import local_text
from ggshell.durations import counted_seconds, milliseconds_text
from ggshell.monitoring.clock_offset import Offset, estimate
from ggshell.monitoring.heartbeat_lag import Direction, Lag, Way, bar
from ggshell.monitoring.spreads import Objective, Spread
from ggshell.plurals import counted


class JobLine(NamedTuple):
    """A heartbeat job; times are in microseconds since 1970, 0 for never."""

    name: str
    every: Decimal
    retention_days: int | None
    last_run: int
    next_run: int
    runs: int


class HeartbeatInfo(NamedTuple):
    """The result of INFO HEARTBEATTABLE; ``frequency`` is in seconds, None if the database sends no heartbeats."""

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

    @property
    def layout(self) -> str:
        return _heartbeat_info(self)


class WayLag(NamedTuple):
    """The lag of a path, with the estimated clock offset."""

    lag: Lag
    offset: Offset | None


class HeartbeatLags(NamedTuple):
    """The result of LAG HEARTBEAT; ``here``: the offset of the database's clock from this host's."""

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

    @property
    def layout(self) -> str:
        return _heartbeat_lags(self)


_FIELDS = ("path", "age", "lag", "extract_lag", "routing_lag", "read_lag", "apply_lag")


class LagTimes(NamedTuple):
    """The result of LAG HEARTBEAT … HISTORY."""

    spreads: tuple[Spread, ...]
    period: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("begin", "remote_database", "path", "hop", "count", "p50", "p95", "p99", "max")

    @property
    def rows(self) -> list[Row]:
        return [(moment(each.begin), *each[1:]) for each in self.spreads]

    @property
    def layout(self) -> str:
        return _lag_times(self)

    @property
    def narrow_layout(self) -> str:
        rows = [
            (local_text(each.begin), each.remote, each.hop, each.beats, *_figures(each), each.path)
            for each in self.spreads
        ]
        return f"\n{table_text(_LAG_HEADS, rows)}" if rows else self.layout


class LagObjective(NamedTuple):
    """The result of LAG HEARTBEAT … SLO."""

    objectives: tuple[Objective, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "remote_database",
            "path",
            "goal",
            "limit",
            "count",
            "within",
            "overdue",
            "share",
            "budget_left",
            "held",
        )

    @property
    def rows(self) -> list[Row]:
        return [(*each, each.share, each.left, each.held) for each in self.objectives]

    @property
    def layout(self) -> str:
        return _lag_objective(self)


def offset_of(lag: Lag, least: Mapping[Way, tuple[float | None, float | None]]) -> Offset | None:
    """Estimate the remote clock's lead from the fastest heartbeats each way; None if one direction is unknown."""
    beat = lag.beat
    seen = least.get((beat.remote_database, beat.incoming_extract, beat.incoming_routing_path, beat.incoming_replicat))
    ins, outs = [lag.incoming.parts.total], [lag.outgoing.parts.total]
    if seen is not None:
        ins.append(seen[0])
        outs.append(seen[1])
    return estimate([each for each in ins if each is not None], [each for each in outs if each is not None])


def clock_warnings(lags: Iterable[Lag]) -> list[Note]:
    """Return one warning for each path with a negative lag component."""
    notes: list[Note] = []
    for lag in lags:
        if lag.negative:
            hops = ", ".join(f"{name} {seconds:.6f} s" for name, seconds in lag.negative)
            text = (
                f"Negative lag from {lag.beat.remote_database} ({lag.incoming.path}): {hops}. The hosts' clocks differ."
            )
            notes.append(Note("GGS-00652", text))
    return notes


BAR_WIDTH = 40


def _heartbeat_info(result: HeartbeatInfo) -> str:
    """Format INFO HEARTBEATTABLE."""
    lines = [""]
    for table in result.tables:
        lines += [f"HEARTBEAT table {table} exists.", ""]
    if result.frequency is None:
        lines += ["Frequency interval: none (TARGETONLY).", ""]
    else:
        paused = "" if result.frequency else " (paused)"
        lines += [f"Frequency interval: {counted_seconds(result.frequency)}{paused}.", ""]
    lines += [f"Purge frequency interval: {counted(result.purge_days, 'day')}.", ""]
    lines += [f"Retention time: {counted(result.retention_days, 'day')}.", ""]
    if result.partitioned:
        lines += ["The history is partitioned by day.", ""]
    for job in result.jobs:
        last, following = (local_text(when) if when else "never" for when in (job.last_run, job.next_run))
        lines.append(f"Job {job.name:<21}last run {last}, next run {following}, {job.runs} runs")
    return "\n".join(lines) + "\n"


def _heartbeat_lags(result: HeartbeatLags) -> str:
    """Format LAG HEARTBEAT."""
    if not result.ways:
        return "\nNo heartbeat has arrived yet.\n"
    lines: list[str] = []
    for way in result.ways:
        lines += _way(way)
    if result.here is not None:
        lead, error = milliseconds_text(abs(result.here.lead)), milliseconds_text(result.here.error)
        ahead = "ahead of" if result.here.lead >= 0 else "behind"
        lines += [f"The database's clock is {lead} {ahead} this host's (+/- {error})."]
    lines += ["e: to Extract, p: to the path, r: to Replicat's reading, a: to the commit in the target"]
    return "\n".join(["", *lines, ""])


def _way(way: WayLag) -> list[str]:
    beat = way.lag.beat
    lines = [f"From {beat.remote_database} to {beat.local_database}   {way.lag.incoming.path}"]
    offset = way.offset
    sure = f" +/- {milliseconds_text(offset.error)}" if offset is not None else ""
    lines += _direction(way.lag.incoming, sure)
    if offset is not None:
        right = (way.lag.incoming.parts.total or 0.0) + offset.lead
        ahead = "ahead of" if offset.lead >= 0 else "behind"
        lines.append(
            f"  Clock of {beat.remote_database} is {milliseconds_text(abs(offset.lead))} {ahead} the local one"
            f" (+/- {milliseconds_text(offset.error)}); lag by one clock {milliseconds_text(right)}"
        )
    if way.lag.outgoing.path:
        lines.append(f"From {beat.local_database} to {beat.remote_database}   {way.lag.outgoing.path}")
        lines += _direction(way.lag.outgoing, sure)
    return [*lines, ""]


def _direction(side: Direction, sure: str) -> list[str]:
    total, age = (
        milliseconds_text(value) if value is not None else "unknown" for value in (side.parts.total, side.age)
    )
    named = zip(("Extract", "path", "read", "apply"), side.parts, strict=True)
    parts = "  ".join(f"{name} {milliseconds_text(value)}" for name, value in named if value is not None)
    return [f"  Lag {total}{sure}, heartbeat {age} old", f"  [{bar(side.parts, BAR_WIDTH)}]", f"  {parts}"]


_LAG_HEADS = ("Begin", "Remote", "Hop", "Count", "p50", "p95", "p99", "Max", "Path")


def _figures(each: Spread) -> tuple[str, ...]:
    return tuple(f"{value:.3f}" for value in (each.p50, each.p95, each.p99, each.longest))


def _lag_times(result: LagTimes) -> str:
    """Format LAG HEARTBEAT … HISTORY."""
    if not result.spreads:
        return "\nNo heartbeat arrived in that period.\n"
    lines = [
        "",
        f"{'Begin':<21}{'Remote':<12}{'Hop':<9}{'Count':>7}{'p50':>11}{'p95':>11}{'p99':>11}{'Max':>11}  Path",
        "",
    ]
    for each in result.spreads:
        figures = "".join(f"{value:>11}" for value in _figures(each))
        begin = local_text(each.begin)
        lines.append(f"{begin:<21}{each.remote:<12}{each.hop:<9}{each.beats:>7}{figures}  {each.path}")
    return "\n".join([*lines, ""])


def _lag_objective(result: LagObjective) -> str:
    """Format LAG HEARTBEAT … SLO."""
    if not result.objectives:
        return "\nNo heartbeat arrived in that period.\n"
    lines = [""]
    for each in result.objectives:
        lines += [f"From {each.remote}   {each.path}", *_objective(each), ""]
    return "\n".join(lines)


def _objective(each: Objective) -> list[str]:
    word = "held" if each.held else "MISSED"
    lines = [
        f"  Within {each.limit:g} s: {each.share:.3%} of {each.due} heartbeats; goal {each.goal:.3%}: {word}",
        f"  Error budget left: {each.left:.1%} ({each.late} late of {each.budget:.1f} allowed)",
    ]
    return [*lines, f"  Not arrived yet: {each.overdue}"] if each.overdue else lines
