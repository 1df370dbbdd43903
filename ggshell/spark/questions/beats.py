"""Heartbeats of any number of deployments in one form: from lag archives, from histories in databases, from trails.

Each source is a view with the columns of a database's history table; a trail knows nothing of what comes behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ggshell.errors import NotFoundError
from ggshell.heartbeat.names import HISTORY_COLUMNS
from ggshell.spark.dialect import literal
from ggshell.spark.questions.trails import Engine
from ggshell.spark.trail_keys import HomeKeys
from ggshell.spark.views import Answer, ParquetType, ParquetView, Part, RowsView, Span, TrailView, View
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
_IN_TRAIL: Final = {
    "remote_database": "local_database",
    "incoming_extract": "outgoing_extract",
    "incoming_routing_path": "outgoing_routing_path",
    "incoming_replicat": "outgoing_replicat",
    "incoming_heartbeat_ts": "heartbeat_timestamp",
    "incoming_extract_ts": "outgoing_extract_ts",
    "incoming_routing_ts": "outgoing_routing_ts",
}
"""Columns of a history, and where a heartbeat under way has them."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where heartbeats of a deployment are."""

    deployment: str
    view: View


@dataclass(frozen=True, slots=True)
class Beats:
    """Heartbeats to ask about: sources, who answers, from when and until when (microseconds since 1970, 0: open)."""

    sources: tuple[Source, ...]
    engine: Engine
    since: int = 0
    until: int = 0
    told: Callable[[str], None] | None = None

    def ask(self, name: str, schema: pa.Schema, part: str, sql: str) -> Answer:
        """The answer to a statement about ``parts``, which are the answers of ``part``, DuckDB's SQL behind WITH.

        That may ask ``lags``: a row for each heartbeat with ``way`` (a number), ``sent``, ``came`` and each hop's lag, in
        microseconds; one that a source has twice, after a crash, counts once, with its earliest times.  And ``ways``: each
        way's number and names, and its ``series``, which is this source's alone.  It is asked of each source, and of each
        slice of an archive by the time of birth: what it says of neighbours across slices is for ``sql`` to see to.
        """
        parts = [Part(source.view, f"WITH {self._ctes(source)}, {part}") for source in self.sources]
        return self.engine.ask_in_parts(name, parts, schema, sql, self.told)

    def _ctes(self, source: Source) -> str:
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
    """SQL of each hop's lag; a hop that is not there has none, and the next counts from the last time known."""
    times, found = list(_TIMES), {}
    for number, hop in enumerate(HOPS[:-1], 1):
        earlier = ", ".join(reversed(times[:number]))
        found[hop] = f"{times[number]} - coalesce({earlier})"
    return {**found, "total": "came - sent"}


def _path(extract: str, routing_path: str, replicat: str) -> str:
    """The groups of a way; of a routing path without the place that is still open."""
    settled = f"nullif(replace(replace({routing_path}, ',*', ''), '*', ''), '')"
    return f"concat_ws(' ==> ', {extract}, {settled}, {replicat})"


def archive(number: int, deployment: str, folder: Path) -> Source:
    """A home's lag archive (LAGARCHIVE of Replicat).  Raises NotFoundError when it has no file."""
    files = sorted(map(str, folder.glob("day=*/*.parquet")))
    if not files:
        raise NotFoundError(f"{folder} has no lag archive", hint="LAGARCHIVE in a Replicat's parameters makes it")
    kinds = ((name, ParquetType.TIME if name.endswith("_ts") else ParquetType.TEXT) for name in HISTORY_COLUMNS)
    return Source(deployment, ParquetView(f"beats_{number}", tuple(files), Span(_TIMES["sent"]), tuple(kinds)))


def history(number: int, deployment: str, rows: Sequence[Sequence[Any]]) -> Source:
    """Rows of a database's history table, in the order of HISTORY_COLUMNS; times as datetimes without zone, in UTC."""
    columns = list(zip(*rows, strict=True)) or [()] * len(HISTORY_COLUMNS)
    return Source(deployment, _at_hand(number, dict(zip(HISTORY_COLUMNS, columns, strict=True))))


def in_trail(
    number: int,
    deployment: str,
    files: Iterable[str],
    tables: Iterable[TableName],
    engine: Engine,
    keys: HomeKeys | None = None,
) -> Source:
    """The heartbeats that a trail carries: their way up to there.  ``tables``: the seed and heartbeat tables in it.

    They are read now, and once: a trail has many rows for each of them.
    """
    view = TrailView("trail", tuple(files), ("owner", "table", "columns"), keys=keys)
    names = " OR ".join(f"(owner = {literal(each.owner)} AND table = {literal(each.name)})" for each in tables)
    wanted = ", ".join(
        f"unix_micros(CAST({column} AS timestamp))" if name.endswith("_ts") else column
        for name, column in ((name, f"element_at(columns, {literal(known)})") for name, known in _IN_TRAIL.items())
    )
    sent = f"element_at(columns, {literal(_IN_TRAIL['incoming_extract_ts'])})"
    answer = engine.ask("LAG REPORT", f"SELECT {wanted} FROM trail WHERE ({names}) AND {sent} IS NOT NULL", [view])
    columns = list(zip(*answer.rows, strict=True)) or [()] * len(_IN_TRAIL)
    return Source(deployment, _at_hand(number, dict(zip(_IN_TRAIL, columns, strict=True))))


def _at_hand(number: int, known: dict[str, Sequence[Any]]) -> RowsView:
    """Columns of a history that are known, and the others empty."""
    count = len(next(iter(known.values())))
    kinds = {name: pa.timestamp("us") if name.endswith("_ts") else pa.string() for name in HISTORY_COLUMNS}
    arrays = [pa.array(known[name], kind) if name in known else pa.nulls(count, kind) for name, kind in kinds.items()]
    return RowsView(f"beats_{number}", pa.table(arrays, names=list(kinds)))
