"""LAG REPORT: the sources of heartbeats that its texts name, and the figures about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ggshell.cli.begin import begin_time
from ggshell.cli.output.tables import table_text
from ggshell.cli.output.units import moment, moment_text, pace_of, period_text
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Row
from ggshell.cli.session import Session
from ggshell.durations import seconds_text
from ggshell.errors import NotFoundError, StateError
from ggshell.files import disk_errors

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn
    from ggshell.query.queries.heartbeats import Heartbeats, HeartbeatSource
    from ggshell.query.queries.lag import LagFigures, LagPath, Window

_WORST = 10
_HEADS = ("begin", "deployment", "remote_database", "local_database", "path", "hop", "count")
_FIGURES = ("mean", "p50", "p95", "p99", "max")
_SOURCE_HINT = "an alias of the credential store, a folder with a lag archive (dirlag), a home, or a trail"


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
    from ggshell.query.queries.heartbeats import Heartbeats

    now = session.clock.now()
    first, last = begin_time(since, now), begin_time(until, now)
    with _sources(session, from_, first) as sources:
        beats = Heartbeats(tuple(sources), session.engines, first, last)
        figures, shown = _figures(beats, by.upper(), top, now, drawn=bool(to))
    rows = [row for window in figures.windows for row in _rows(window)]
    written = _write(session, to, shown) if to else ""
    return Listing((*_HEADS, *_FIGURES), rows, _layout(figures) + written)


@contextmanager
def _sources(session: Session, texts: Sequence[str], since: int) -> Iterator[list[HeartbeatSource]]:
    """Yield the sources that the texts name; sources that hold the same heartbeats are merged.

    Raises NotFoundError for a text that names no source, StateError if no text is given and there is no default source.
    """
    from ggshell.query.queries.heartbeats import merged

    found = _found(session, texts, since)
    session.home.ensure()
    with TemporaryDirectory(prefix="lag-", dir=session.home.root / "dirtmp") as folder:
        yield merged(found, Path(folder))


def _found(session: Session, texts: Sequence[str], since: int) -> list[HeartbeatSource]:
    """Return each source; without texts, this home's archive, or else the database of the login."""
    if texts:
        once = dict.fromkeys(texts)  # a source that is named twice counts once
        return [_source(session, number, text, since) for number, text in enumerate(once, 1)]
    from ggshell.monitoring.lag_archive import lag_folder
    from ggshell.query.queries.heartbeats import archive

    folder = lag_folder(session.home)
    if next(folder.glob("day=*/*.parquet"), None) is not None:
        return [archive(1, "this home", folder, session.clock.now())]
    if session.login is None:
        raise StateError(
            "this home has no lag archive, and you are not logged in to a database",
            code="GGS-00204",
            hint="DBLOGIN …, FROM source, or LAGARCHIVE in a Replicat's parameters",
        )
    return [_of_database(session, 1, session.login.database, session.login, since)]


def _source(session: Session, number: int, text: str, since: int) -> HeartbeatSource:
    from ggshell.query.queries.heartbeats import archive

    path = session.home.resolve(text)
    for folder in (path, path / "dirlag"):
        if next(folder.glob("day=*"), None) is not None:
            return archive(number, text, folder, session.clock.now())
    if _is_trail(path):
        return _of_trail(session, number, text, path)
    login = _logged_in(session, text)
    try:
        return _of_database(session, number, text, login, since)
    finally:
        login.close()


def _is_trail(path: Path) -> bool:
    from ggshell.query.paths import trail_files

    try:
        return bool(trail_files(str(path)))
    except NotFoundError:
        return False


def _of_trail(session: Session, number: int, text: str, path: Path) -> HeartbeatSource:
    from ggshell.cli.trail_queries import home_keys
    from ggshell.pipeline.heartbeat.row import layout_of
    from ggshell.query.paths import trail_files
    from ggshell.query.queries.heartbeats import in_trail
    from ggshell.query.splits import metadata_records

    files = trail_files(str(path))
    definitions = {definition for file in files for _, _, definition in metadata_records(Path(file))}
    tables = sorted({each.name for each in definitions if layout_of(each) is not None})
    if not tables:
        raise NotFoundError(f"{text} contains no heartbeats", hint="ADD HEARTBEATTABLE in the source of its Extract")
    return in_trail(number, text, files, tables, session.engines, home_keys(session), session.clock.now())


def _of_database(session: Session, number: int, name: str, login: LoggedIn, since: int) -> HeartbeatSource:
    from ggshell.groups.heartbeat_settings import required_names
    from ggshell.query.queries.heartbeats import ASKED, history
    from ggshell.query.queries.lag import GAP_LOOK_BACK

    tables = login.heartbeat_tables(required_names(session.home))
    tables.require()
    first = max(0, since - GAP_LOOK_BACK * 1_000_000)
    return history(number, name, tables.history(ASKED, first), tables.time())


def _logged_in(session: Session, alias: str) -> LoggedIn:
    """Log in with an alias. Raises NotFoundError, DatabaseError."""
    from ggshell.cli.commands.database import login_of_alias

    try:
        return login_of_alias(session, alias)
    except NotFoundError as error:
        raise NotFoundError(
            f"{alias} has no heartbeats: it is not an alias, archive, home or trail", hint=_SOURCE_HINT
        ) from error


def _figures(beats: Heartbeats, period: str, top: int, now: int, *, drawn: bool) -> tuple[LagFigures, LagFigures]:
    """Return the figures for the requested period, and for the period of the page.

    Raises NotFoundError if there are no heartbeats.
    """
    from ggshell.query.queries import lag

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
    with disk_errors("write", path, hint="specify another file in TO"):
        path.write_text(page(figures), encoding="utf-8")
    coarser = (
        f", by {figures.period.lower()}, because it would be too detailed by {figures.asked.lower()}"
        if figures.asked
        else ""
    )
    return f"\nPage written to {path}{coarser}.\n"


def _layout(figures: LagFigures) -> str:
    names = _names(figures.windows)
    worst = [
        (
            period_text(each.begin, figures.period),
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
        more = f"{', not ended' if gap.lasts else ''} (usual: {seconds_text(gap.usual)})"
        text += f"  {names.get(gap.way, str(gap.way))}: no heartbeat for {span}{more}\n"
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
