"""LAG REPORT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ggshell.cli.begin import begin_time
from ggshell.cli.lag_sources import sources_of
from ggshell.cli.output.tables import table_text
from ggshell.cli.output.units import moment
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Row
from ggshell.cli.session import Session
from ggshell.errors import DiskError, NotFoundError

if TYPE_CHECKING:
    from ggshell.query.questions.heartbeats import Heartbeats
    from ggshell.query.questions.lag import LagFigures, LagPath, Window

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
) -> Listing:
    """Show figures by path, hop and period; write the lag page if a file is given."""
    from ggshell.query.questions.heartbeats import Heartbeats

    now = session.clock.now()
    first, last = begin_time(since, now), begin_time(until, now)
    with sources_of(session, from_, first) as sources:
        beats = Heartbeats(tuple(sources), session.engines, first, last)
        figures, shown = _figures(beats, by.upper(), top, now, drawn=bool(to))
    rows = [row for window in figures.windows for row in _rows(window)]
    written = _write(session, to, shown) if to else ""
    return Listing((*_HEADS, *_FIGURES), rows, _layout(figures) + written)


def _figures(beats: Heartbeats, period: str, top: int, now: int, *, drawn: bool) -> tuple[LagFigures, LagFigures]:
    """Return the figures for the requested period, and for the period of the page.

    Raises NotFoundError if there are no heartbeats.
    """
    from ggshell.query.questions import lag

    windows = lag.windows(beats, period)
    if not windows:
        raise NotFoundError(
            "no heartbeat was received in that period", hint="ADD HEARTBEATTABLE, then START the groups"
        )

    def found(period: str, windows: list[Window]) -> LagFigures:
        worst, trends = lag.worst(windows, top), lag.trends(windows, period)
        names = tuple(each.deployment for each in beats.sources)
        return lag.LagFigures(period, names, now, windows, worst, trends, lag.gaps(beats), lag.clock_leads(windows))

    figures = found(period, windows)
    coarser = lag.drawn_period(windows, period) if drawn else period
    if coarser == period:
        return figures, figures
    return figures, found(coarser, lag.windows(beats, coarser))._replace(asked=period)


def _rows(window: Window) -> list[Row]:
    way = window.way
    return [
        (moment(window.begin), *way, hop, window.beats, *each[:5])
        for hop, each in window.hops.items()
        if each.mean is not None
    ]


def _write(session: Session, file: str, figures: LagFigures) -> str:
    from ggshell.cli.lag_page.page import page

    path = session.home.resolve(file)
    try:
        path.write_text(page(figures), encoding="utf-8")
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}", hint="specify another file in TO") from error
    coarser = (
        f", by {figures.period.lower()}, because it would be too detailed by {figures.asked.lower()}"
        if figures.asked
        else ""
    )
    return f"\nPage written to {path}{coarser}.\n"


def _layout(figures: LagFigures) -> str:
    from ggshell.cli.lag_page.charts import time_text
    from ggshell.cli.output.units import moment_text, pace_of, seconds_text

    names = _names(figures.windows)
    worst = [
        (
            time_text(each.begin, figures.period),
            names[each.way],
            each.beats,
            *(seconds_text(value) for value in (each.total.p50, each.total.p95, each.total.p99, each.total.longest)),
            *(seconds_text(each.hops[hop].mean) for hop in ("extract", "routing", "read", "apply")),
        )
        for each in figures.worst
    ]
    heads = ("time (UTC)", "path", "beats", "p50", "p95", "p99", "max", "extract", "routing", "read", "apply")
    text = f"\nWorst times, by p95\n\n{table_text(heads, worst)}\nTrend\n\n"
    for trend in figures.trends:
        end = "" if trend.caught_up is None else f"; caught up in {seconds_text(trend.caught_up)} at this rate"
        pace = pace_of(trend.slope, figures.period)
        moves = f"{'rises' if trend.slope > 0 else 'falls'} by {pace}" if pace else "steady"
        last = f"{seconds_text(trend.now)} in the last {figures.period.lower()}"
        text += f"  {names[trend.way]}: {last}, {moves}{end}\n"
    text += "\nMissing heartbeats\n\n"
    for gap in figures.gaps:
        span = f"{seconds_text(gap.seconds)} from {moment_text(gap.begin)}"
        text += f"  {names.get(gap.way, str(gap.way))}: no heartbeat for {span} (usual: {seconds_text(gap.usual)})\n"
    text += "" if figures.gaps else "  none\n"
    for clock in figures.clocks:
        lead, error = seconds_text(clock.offset.lead), seconds_text(clock.offset.error)
        text += f"\nThe clock of {clock.remote} is ahead of that of {clock.local} by {lead} (+/- {error}).\n"
    return text


def _names(windows: Iterable[Window]) -> dict[LagPath, str]:
    """The display name of each path; if several deployments have a path of the same name, the deployment is added."""
    ways = dict.fromkeys(each.way for each in windows)
    alike = Counter(str(way) for way in ways)
    return {way: f"{way} ({way.deployment})" if alike[str(way)] > 1 else str(way) for way in ways}
