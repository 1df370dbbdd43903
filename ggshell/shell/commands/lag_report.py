"""LAG REPORT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.errors import DiskError, NotFoundError
from ggshell.shell.asking import Answered, table_text
from ggshell.shell.begin import begin_time
from ggshell.shell.lag_sources import sources_of
from ggshell.shell.registry import command
from ggshell.shell.results import Row, moment
from ggshell.shell.session import Session

if TYPE_CHECKING:
    from ggshell.shell.lag_page.page import LagFigures
    from ggshell.spark.questions.lag import Window

_WORST = 10
_HEADS = ("begin", "deployment", "remote_database", "local_database", "path", "hop", "count")
_FIGURES = ("mean", "p50", "p95", "p99", "max")


@command("LAG REPORT")
def lag_report(
    session: Session,
    *,
    to: str = "",
    from_: tuple[str, ...] = (),
    by: str = "HOUR",
    since: str = "",
    until: str = "",
    top: int = _WORST,
) -> Answered:
    """Figures by way, hop and period; the page when a file is named."""
    from ggshell.spark.questions import lag
    from ggshell.spark.questions.beats import Beats

    now = session.clock.now()
    first, last, period = begin_time(since, now), begin_time(until, now), by.upper()
    sources = sources_of(session, from_, first)
    beats = Beats(tuple(sources), session.engines, first, last)
    windows = lag.windows(beats, period)
    if not windows:
        raise NotFoundError("no heartbeat has come in that time", hint="ADD HEARTBEATTABLE, and START the groups")
    from ggshell.shell.lag_page.page import LagFigures

    figures = LagFigures(
        period,
        tuple(each.deployment for each in sources),
        now,
        windows,
        lag.worst(windows, top),
        lag.trends(windows, period),
        lag.gaps(beats),
        lag.clock_leads(windows),
    )
    written = _write(session, to, figures) if to else ""
    rows = [row for window in windows for row in _rows(window)]
    return Answered((*_HEADS, *_FIGURES), rows, _layout(figures) + written)


def _rows(window: Window) -> list[Row]:
    way = window.way
    return [
        (moment(window.begin), *way, hop, window.beats, *each[:5])
        for hop, each in window.hops.items()
        if each.mean is not None
    ]


def _write(session: Session, file: str, figures: LagFigures) -> str:
    from ggshell.shell.lag_page.page import page

    path = session.home.resolve(file)
    try:
        path.write_text(page(figures), encoding="utf-8")
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}", hint="TO another file") from error
    return f"\nThe page is {path}.\n"


def _layout(figures: LagFigures) -> str:
    from ggshell.shell.lag_page.svg import moment_text, pace_of, seconds_text, time_text

    worst = [
        (
            time_text(each.begin, figures.period),
            str(each.way),
            each.beats,
            *(seconds_text(value) for value in (each.total.p50, each.total.p95, each.total.p99, each.total.longest)),
            *(seconds_text(each.hops[hop].mean) for hop in ("extract", "routing", "read", "apply")),
        )
        for each in figures.worst
    ]
    heads = ("time (UTC)", "way", "beats", "p50", "p95", "p99", "max", "extract", "routing", "read", "apply")
    text = f"\nWorst times, by p95\n\n{table_text(heads, worst)}\nHow it moves\n\n"
    for trend in figures.trends:
        end = "" if trend.caught_up is None else f"; gone in {seconds_text(trend.caught_up)} if it goes on so"
        pace = pace_of(trend.slope, figures.period)
        moves = f"{'rises' if trend.slope > 0 else 'falls'} by {pace}" if pace else "steady"
        text += f"  {trend.way}: {seconds_text(trend.now)} in the last {figures.period.lower()}, {moves}{end}\n"
    text += "\nMissing heartbeats\n\n"
    for gap in figures.gaps:
        span = f"{seconds_text(gap.seconds)} from {moment_text(gap.begin)} on"
        text += f"  {gap.way}: no heartbeat for {span} (usual: {seconds_text(gap.usual)})\n"
    text += "" if figures.gaps else "  none\n"
    for clock in figures.clocks:
        lead, error = seconds_text(clock.offset.lead), seconds_text(clock.offset.error)
        text += f"\nThe clock of {clock.remote} leads that of {clock.local} by {lead} (+/- {error}).\n"
    return text
