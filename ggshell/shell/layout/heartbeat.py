"""Heartbeats: the state of the tables, and lag with the share of each hop as a bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.clock import local_text
from ggshell.heartbeat.history import Objective
from ggshell.heartbeat.lag import bar
from ggshell.heartbeat.lags import Direction
from ggshell.shell.heartbeats import HeartbeatInfo, HeartbeatLags, LagObjective, LagTimes, WayLag

BAR_WIDTH = 40


def info(result: HeartbeatInfo) -> str:
    """INFO HEARTBEATTABLE."""
    lines = [""]
    for table in result.tables:
        lines += [f"HEARTBEAT table {table} exists.", ""]
    if result.frequency is None:
        lines += ["Frequency interval: none (TARGETONLY).", ""]
    else:
        paused = "" if result.frequency else " (paused)"
        lines += [f"Frequency interval: {result.frequency.normalize():f} seconds{paused}.", ""]
    lines += [f"Purge frequency interval: {result.purge_days} days.", ""]
    lines += [f"Retention time: {result.retention_days} days.", ""]
    if result.partitioned:
        lines += ["The history is partitioned by day.", ""]
    for job in result.jobs:
        last, following = (local_text(when) if when else "never" for when in (job.last_run, job.next_run))
        lines.append(f"Job {job.name:<21}last run {last}, next run {following}, {job.runs} runs")
    return "\n".join(lines) + "\n"


def lags(result: HeartbeatLags) -> str:
    """LAG HEARTBEAT."""
    if not result.ways:
        return "\nNo heartbeat has come yet.\n"
    lines: list[str] = []
    for way in result.ways:
        lines += _way(way)
    if result.here is not None:
        lead, error = seconds(result.here.lead), seconds(result.here.error)
        lines += [f"The database's clock leads this host's by {lead} (+/- {error})."]
    lines += ["e: to Extract, p: to the path, r: to Replicat's reading, a: to the commit in the target"]
    return "\n".join(["", *lines, ""])


def _way(way: WayLag) -> list[str]:
    beat = way.lag.beat
    lines = [f"From {beat.remote_database} to {beat.local_database}   {way.lag.incoming.path}"]
    offset = way.offset
    sure = f" +/- {seconds(offset.error)}" if offset is not None else ""
    lines += _direction(way.lag.incoming, sure)
    if offset is not None:
        right = (way.lag.incoming.parts.total or 0.0) + offset.lead
        ahead = "ahead of" if offset.lead >= 0 else "behind"
        lines.append(
            f"  Clock of {beat.remote_database} is {seconds(abs(offset.lead))} {ahead} the local one"
            f" (+/- {seconds(offset.error)}); lag by one clock {seconds(right)}"
        )
    if way.lag.outgoing.path:
        lines.append(f"From {beat.local_database} to {beat.remote_database}   {way.lag.outgoing.path}")
        lines += _direction(way.lag.outgoing, sure)
    return [*lines, ""]


def _direction(side: Direction, sure: str) -> list[str]:
    total, age = (seconds(value) if value is not None else "unknown" for value in (side.parts.total, side.age))
    named = zip(("Extract", "path", "read", "apply"), side.parts, strict=True)
    parts = "  ".join(f"{name} {seconds(value)}" for name, value in named if value is not None)
    return [f"  Lag {total}{sure}, heartbeat {age} old", f"  [{bar(side.parts, BAR_WIDTH)}]", f"  {parts}"]


def seconds(value: float) -> str:
    """A duration to the millisecond."""
    return f"{value:.3f} s"


def times(result: LagTimes) -> str:
    """LAG HEARTBEAT … HISTORY."""
    if not result.spreads:
        return "\nNo heartbeat has come in that time.\n"
    lines = [
        "",
        f"{'Begin':<21}{'Remote':<12}{'Hop':<9}{'Count':>7}{'p50':>11}{'p95':>11}{'p99':>11}{'Max':>11}  Path",
        "",
    ]
    for each in result.spreads:
        figures = "".join(f"{value:>11.3f}" for value in (each.p50, each.p95, each.p99, each.longest))
        begin = local_text(each.begin)
        lines.append(f"{begin:<21}{each.remote:<12}{each.hop:<9}{each.beats:>7}{figures}  {each.path}")
    return "\n".join([*lines, ""])


def objective(result: LagObjective) -> str:
    """LAG HEARTBEAT … SLO."""
    if not result.objectives:
        return "\nNo heartbeat has come in that time.\n"
    lines = [""]
    for each in result.objectives:
        lines += [f"From {each.remote}   {each.path}", *_objective(each), ""]
    return "\n".join(lines)


def _objective(each: Objective) -> list[str]:
    word = "held" if each.held else "MISSED"
    return [
        f"  Within {each.limit:g} s: {each.share:.3%} of {each.beats} heartbeats; goal {each.goal:.3%}: {word}",
        f"  Error budget left: {each.left:.1%} ({each.beats - each.within} late of {each.budget:.1f} allowed)",
    ]


LAYOUTS: dict[type, Callable[[Any], str]] = {
    HeartbeatInfo: info,
    HeartbeatLags: lags,
    LagTimes: times,
    LagObjective: objective,
}
