"""Heartbeats of any number of deployments in one form, from lag archives, history tables of databases, and trails.

Each source is a view with the columns of a database's history table. A trail has no information about later hops.
Sources with the same heartbeats, such as a database's history and its home's lag archive, are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from io import BufferedReader, RawIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv

from ggshell.errors import NotFoundError
from ggshell.monitoring.lag_archive import WRITE_SECONDS
from ggshell.pipeline.heartbeat.names import HISTORY_COLUMNS
from ggshell.query.dialect import literal
from ggshell.query.views import Engine, FirstHalf, ParquetType, ParquetView, QueryAnswer, RowsView, TimeRange

if TYPE_CHECKING:
    from ggshell.query.trail_read import HomeKeys
    from ggshell.types import TableName

HOPS: Final = ("extract", "routing", "read", "apply", "total")
_TIMES: Final = {
    "sent": "incoming_heartbeat_ts",
    "at_extract": "incoming_extract_ts",
    "at_routing": "incoming_routing_ts",
    "at_replicat": "incoming_replicat_ts",
    "received": "heartbeat_received_ts",
}
_WAY: Final = ("remote_database", "local_database", "incoming_extract", "incoming_routing_path", "incoming_replicat")
ASKED: Final = (*_WAY, *_TIMES.values())
"""The columns of a history table that queries need."""
_IN_TRAIL: Final = {
    "remote_database": "local_database",
    "incoming_extract": "outgoing_extract",
    "incoming_routing_path": "outgoing_routing_path",
    "incoming_replicat": "outgoing_replicat",
    "incoming_heartbeat_ts": "heartbeat_timestamp",
    "incoming_extract_ts": "outgoing_extract_ts",
    "incoming_routing_ts": "outgoing_routing_ts",
}
"""Columns of a history table, and the column that has the value while a heartbeat is under way."""


@dataclass(frozen=True, slots=True)
class HeartbeatSource:
    """A deployment's heartbeats.

    ``known_until``: the time up to which the view has every heartbeat that arrived, in microseconds since 1970 (0: not
    known).
    """

    deployment: str
    view: ParquetView | RowsView
    known_until: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The heartbeats to query: sources, engine and time range (microseconds since 1970, 0: open)."""

    sources: tuple[HeartbeatSource, ...]
    engine: Engine
    since: int = 0
    until: int = 0
    on_progress: Callable[[str], None] | None = None

    def known_until(self, deployment: str) -> int:
        """The time up to which the heartbeats of a deployment are known, within the time range."""
        known = max(source.known_until for source in self.sources if source.deployment == deployment)
        return min(known, self.until) if self.until else known

    def ask(self, name: str, schema: pa.Schema, part: str, sql: str) -> QueryAnswer:
        """Run a query over ``parts``, the combined results of ``part``, which is DuckDB's SQL after WITH.

        ``part`` can read ``lags``: one row per heartbeat with ``way`` (a number), ``sent``, ``came`` and the lag of each
        hop, in microseconds. A heartbeat that a source has twice, after a crash, counts once, with its earliest times. It
        can also read ``ways``: the number and names of each path, and its ``series``, which is unique to the source.
        ``part`` runs on each source, and on each slice of an archive by birth time, so ``sql`` must handle neighbors across
        slices.
        """
        parts = [FirstHalf(source.view, f"WITH {self._ctes(source)}, {part}") for source in self.sources]
        return self.engine.ask_in_parts(name, parts, schema, sql, self.on_progress)

    def _ctes(self, source: HeartbeatSource) -> str:
        limits = [f"came >= {self.since}"] if self.since else []
        limits += [f"came < {self.until}"] if self.until else []
        where = f" WHERE {' AND '.join(limits)}" if limits else ""
        least = ", ".join(f"epoch_us(min({column})) AS {time}" for time, column in list(_TIMES.items())[1:])
        hops = ", ".join(f"{sql} AS {hop}_lag" for hop, sql in _lags().items())
        names = ", ".join(f"coalesce(told.{name}, '') AS {name}" for name in _WAY[:2])
        number, view = f"hash({', '.join(_WAY)}) AS way", source.view.name
        return f"""
            ways AS (SELECT {number}, concat({literal(view)}, CAST([{", ".join(_WAY)}] AS varchar)) AS series,
                            {literal(source.deployment)} AS deployment, {names}, {_path(*_WAY[2:])} AS path
                       FROM (SELECT DISTINCT {", ".join(_WAY)} FROM {view}) AS told),
            once AS (SELECT {number}, epoch_us({_TIMES["sent"]}) AS sent, {least}
                       FROM {view} WHERE {_TIMES["sent"]} IS NOT NULL GROUP BY ALL),
            lags AS (SELECT way, sent, came, {hops}
                       FROM (SELECT *, coalesce(received, at_replicat, at_routing, at_extract, sent) AS came FROM once)
                       {where})"""


def _lags() -> dict[str, str]:
    """The SQL of each hop's lag. A hop without a time has no lag; the next one counts from the last known time."""
    times, found = list(_TIMES), {}
    for number, hop in enumerate(HOPS[:-1], 1):
        earlier = ", ".join(reversed(times[:number]))
        found[hop] = f"{times[number]} - coalesce({earlier})"
    return {**found, "total": "came - sent"}


def _path(extract: str, routing_path: str, replicat: str) -> str:
    """The groups of a path; the open position of a routing path is left out."""
    settled = f"nullif(replace(replace({routing_path}, ',*', ''), '*', ''), '')"
    return f"concat_ws(' ==> ', {extract}, {settled}, {replicat})"


def archive(number: int, deployment: str, folder: Path, now: int = 0) -> HeartbeatSource:
    """The lag archive of a home (LAGARCHIVE of Replicat). Raises NotFoundError if it has no files.

    A running Replicat can still hold the heartbeats of the last minute before ``now``.
    """
    files = sorted(map(str, folder.glob("day=*/*.parquet")))
    if not files:
        raise NotFoundError(f"{folder} has no lag archive", hint="add LAGARCHIVE to a Replicat's parameters")
    kinds = ((name, ParquetType.TIME if name.endswith("_ts") else ParquetType.TEXT) for name in HISTORY_COLUMNS)
    view = ParquetView(f"beats_{number}", tuple(files), TimeRange(_TIMES["sent"]), tuple(kinds))
    return HeartbeatSource(deployment, view, max(0, now - round(WRITE_SECONDS * 1_000_000)))


def history(number: int, deployment: str, csv: Iterable[bytes], now: int = 0) -> HeartbeatSource:
    """The rows of a database's history table, from CSV with the columns of ASKED, at a time by the database's clock.

    The CSV comes in pieces that can end anywhere. NULL is empty. Times are UTC without a zone. The rows are kept in memory
    as columns, about 100 bytes per heartbeat.
    """
    read = pa_csv.ReadOptions(column_names=list(ASKED))
    kinds = {name: pa.timestamp("us") if name.endswith("_ts") else pa.string() for name in ASKED}
    convert = pa_csv.ConvertOptions(
        column_types=kinds, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    pieces = iter(csv)
    first = next(pieces, b"")
    if not first:
        return HeartbeatSource(deployment, _at_hand(number, dict.fromkeys(ASKED, ())), now)
    file = BufferedReader(_Pieces(chain([first], pieces)), _BLOCK)
    with pa_csv.open_csv(file, read, convert_options=convert) as batches:
        return HeartbeatSource(deployment, RowsView(f"beats_{number}", batches.read_all()), now)


_BLOCK: Final = 1 << 20
"""Bytes per read. The CSV reader takes the result of one read as a block, which must contain whole lines."""


class _Pieces(RawIOBase):
    """Pieces of bytes as a readable file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def in_trail(
    number: int,
    deployment: str,
    files: Iterable[str],
    tables: Iterable[TableName],
    engine: Engine,
    keys: HomeKeys | None = None,
    now: int = 0,
) -> HeartbeatSource:
    """The heartbeats in a trail at a time, with their path up to it. ``tables``: the seed and heartbeat tables in the trail.

    They are read immediately, and only once, because a trail has many other rows.
    """
    from ggshell.query.trail_read import TrailView  # the other sources need no reader of trails

    view = TrailView("trail", tuple(files), ("owner", "table", "columns"), keys=keys)
    names = " OR ".join(f"(owner = {literal(each.owner)} AND table = {literal(each.name)})" for each in tables)
    wanted = ", ".join(
        f"unix_micros(CAST({column} AS timestamp))" if name.endswith("_ts") else column
        for name, column in ((name, f"element_at(columns, {literal(known)})") for name, known in _IN_TRAIL.items())
    )
    sent = f"element_at(columns, {literal(_IN_TRAIL['incoming_extract_ts'])})"
    answer = engine.ask("LAG REPORT", f"SELECT {wanted} FROM trail WHERE ({names}) AND {sent} IS NOT NULL", [view])
    columns = list(zip(*answer.rows, strict=True)) or [()] * len(_IN_TRAIL)
    return HeartbeatSource(deployment, _at_hand(number, dict(zip(_IN_TRAIL, columns, strict=True))), now)


def _at_hand(number: int, known: dict[str, Sequence[Any]]) -> RowsView:
    """The known columns of a history table, with the others empty."""
    count = len(next(iter(known.values())))
    kinds = {name: pa.timestamp("us") if name.endswith("_ts") else pa.string() for name in HISTORY_COLUMNS}
    arrays = [pa.array(known[name], kind) if name in known else pa.nulls(count, kind) for name, kind in kinds.items()]
    return RowsView(f"beats_{number}", pa.table(arrays, names=list(kinds)))


DAYS: Final = 3
"""The number of days with heartbeats in both archives that are compared, the last ones."""
_MOMENTS: Final = (ASKED[-1], ASKED[5])
"""When a heartbeat arrived, and when it was born."""
_BEAT: Final = ASKED[:6]
"""The names of a path, and the time of birth."""
Beat = tuple[object, ...]


def merged(sources: Sequence[HeartbeatSource], folder: Path) -> list[HeartbeatSource]:
    """Merge sources that share a heartbeat; the merged source has all their names. ``folder``: for temporary files.

    A path is named by its two databases and its groups. Two deployments can use the same names, so equal names do not prove
    that two paths are the same. A shared heartbeat does: the same path, born in the same microsecond. In a merged source
    each heartbeat counts once.
    """
    groups: list[list[HeartbeatSource]] = []
    for source in sources:
        same = [group for group in groups if any(_share(known, source) for known in group)]
        groups = [group for group in groups if not any(group is each for each in same)]
        groups.append([*(known for group in same for known in group), source])
    return [_one(group, folder) if len(group) > 1 else group[0] for group in groups]


def _share(first: HeartbeatSource, second: HeartbeatSource) -> bool:
    """Whether two sources share a heartbeat."""
    days = sorted(_days(first) & _days(second))[-DAYS:]
    return bool(days) and not _beats(first, days).isdisjoint(_beats(second, days))


def _days(source: HeartbeatSource) -> set[str]:
    """The days (UTC) on which heartbeats arrived; for an archive, from the names of its folders."""
    view = source.view
    if isinstance(view, ParquetView):
        return set(map(_day_of, view.files))
    return set(map(str, _came(view.table).unique().to_pylist())) if isinstance(view, RowsView) else set()


def _day_of(file: str) -> str:
    return Path(file).parent.name.removeprefix("day=")


def _came(table: pa.Table) -> pa.ChunkedArray:
    """The day on which each heartbeat arrived; for a heartbeat still under way, the day of its birth."""
    import pyarrow.compute as pc

    return pc.coalesce(*(table[name] for name in _MOMENTS)).cast(pa.date32(), safe=False)


def _beats(source: HeartbeatSource, days: Iterable[str]) -> set[Beat]:
    """The heartbeats of some days."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    view = source.view
    if isinstance(view, RowsView):
        wanted = pa.array([date.fromisoformat(day) for day in days])
        return _beats_of(view.table.filter(pc.is_in(_came(view.table), wanted)))
    files = [file for file in view.files if _day_of(file) in days]
    return {beat for file in files for beat in _beats_of(pq.read_table(file, columns=list(_BEAT), partitioning=None))}


def _beats_of(table: pa.Table) -> set[Beat]:
    columns = [table[name].cast(pa.timestamp("us")) if name.endswith("_ts") else table[name] for name in _BEAT]
    return set(zip(*(column.to_pylist() for column in columns), strict=True))


def _one(group: Sequence[HeartbeatSource], folder: Path) -> HeartbeatSource:
    """Merge several sources into one. Rows in memory are written to a file next to those of the archives."""
    views = [source.view for source in group]
    name, known = ", ".join(source.deployment for source in group), max(source.known_until for source in group)
    tables = [view.table.select(list(ASKED)) for view in views if isinstance(view, RowsView)]
    archives = [view for view in views if isinstance(view, ParquetView)]
    if not archives:
        return HeartbeatSource(name, RowsView(views[0].name, pa.concat_tables(tables)), known)
    files = list(dict.fromkeys(str(Path(file).resolve()) for view in archives for file in view.files))
    if tables:
        import pyarrow.parquet as pq

        file = folder / f"{archives[0].name}.parquet"
        pq.write_table(pa.concat_tables(tables), file)
        files.append(str(file))
    whole = archives[0]
    return HeartbeatSource(name, ParquetView(whole.name, tuple(files), whole.span, whole.columns), known)
