"""Heartbeats of any number of deployments in one form: from lag archives, from histories in databases, from trails.

Each row: deployment, remote_database (where it was born), local_database, path, and the microseconds since 1970 of its birth
(``sent``) and of each hop; a trail knows nothing of what comes behind it.
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
from ggshell.spark.views import Answer, ParquetView, RowsView, TrailView, View
from ggshell.types import TableName

HOPS: Final = ("extract", "routing", "read", "apply", "total")
_TIMES: Final = ("sent", "at_extract", "at_routing", "at_replicat", "received")
_INCOMING: Final = (
    "incoming_heartbeat_ts",
    "incoming_extract_ts",
    "incoming_routing_ts",
    "incoming_replicat_ts",
    "heartbeat_received_ts",
)
_WAY: Final = ("incoming_extract", "incoming_routing_path", "incoming_replicat")
_IN_TRAIL: Final = ("heartbeat_timestamp", "outgoing_extract_ts", "outgoing_routing_ts")


@dataclass(frozen=True, slots=True)
class Source:
    """Where heartbeats of a deployment are: a view, and the SELECT that gives them in the one form."""

    deployment: str
    view: View
    sql: str


@dataclass(frozen=True, slots=True)
class Beats:
    """Heartbeats to ask about: sources, who answers, from when and until when (microseconds since 1970, 0: open)."""

    sources: tuple[Source, ...]
    engine: Engine
    since: int = 0
    until: int = 0
    told: Callable[[str], None] | None = None

    def ask(self, name: str, select: str) -> Answer:
        """The answer to a SELECT about ``lags``: a row for each heartbeat, with the lag of each hop in seconds.  A heartbeat
        that a source has twice, after a crash, counts once."""
        union = " UNION ALL ".join(source.sql for source in self.sources)
        hops = ", ".join(f"{sql} AS {hop}_lag" for hop, sql in _lags().items())
        limits = [f"came >= {self.since}"] if self.since else []
        limits += [f"came < {self.until}"] if self.until else []
        where = f" WHERE {' AND '.join(limits)}" if limits else ""
        sql = f"""
            WITH beats AS (SELECT *, coalesce(received, at_replicat, at_routing, at_extract, sent) AS came
                             FROM ({union}) AS every WHERE sent IS NOT NULL),
                 lags AS (SELECT *, {hops} FROM beats{where})
            {select}"""
        return self.engine.ask(name, sql, [source.view for source in self.sources], self.told)


def _lags() -> dict[str, str]:
    """SQL of each hop's lag; a hop that is not there has none, and the next counts from the last time known."""
    found = {}
    for number, hop in enumerate(HOPS[:-1], 1):
        earlier = ", ".join(reversed(_TIMES[:number]))
        found[hop] = f"({_TIMES[number]} - coalesce({earlier})) / 1e6"
    found["total"] = "(came - sent) / 1e6"
    return {hop: f"CAST({sql} AS double)" for hop, sql in found.items()}


def archive(number: int, deployment: str, folder: Path) -> Source:
    """A home's lag archive (LAGARCHIVE of Replicat).  Raises NotFoundError when it has no file."""
    files = sorted(map(str, folder.glob("day=*/*.parquet")))
    if not files:
        raise NotFoundError(f"{folder} has no lag archive", hint="LAGARCHIVE in a Replicat's parameters makes it")
    view = ParquetView(f"beats_{number}", tuple(files))
    return Source(deployment, view, _of_history(deployment, view.name))


def history(number: int, deployment: str, rows: Sequence[Sequence[Any]]) -> Source:
    """Rows of a database's history table, in the order of HISTORY_COLUMNS; times as datetimes without zone, in UTC."""
    fields = [pa.field(name, pa.timestamp("us") if name.endswith("_ts") else pa.string()) for name in HISTORY_COLUMNS]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    view = RowsView(f"beats_{number}", pa.table(arrays, pa.schema(fields)))
    return Source(deployment, view, _of_history(deployment, view.name))


def _of_history(deployment: str, view: str) -> str:
    """Each heartbeat once, though it may have been applied, or gathered, again after a crash."""
    names = ("remote_database", "local_database", *_WAY, _INCOMING[0])
    least = ", ".join(f"min({name}) AS {name}" for name in _INCOMING[1:])
    times = ", ".join(
        f"unix_micros(CAST({name} AS timestamp)) AS {time}" for name, time in zip(_INCOMING, _TIMES, strict=True)
    )
    return (
        f"SELECT {literal(deployment)} AS deployment, remote_database, local_database, {_path(*_WAY)} AS path, {times}"
        f" FROM (SELECT {', '.join(names)}, {least} FROM {view} GROUP BY {', '.join(names)}) AS {view}_once"
    )


def in_trail(number: int, deployment: str, files: Iterable[str], tables: Iterable[TableName]) -> Source:
    """The heartbeats that a trail carries: their way up to there.  ``tables``: the seed and heartbeat tables in it."""
    view = TrailView(f"beats_{number}", tuple(files), ("owner", "table", "columns"))
    names = " OR ".join(f"(owner = {literal(each.owner)} AND table = {literal(each.name)})" for each in tables)

    def column(name: str) -> str:
        return f"element_at(columns, {literal(name)})"

    path = _path(column("outgoing_extract"), column("outgoing_routing_path"), column("outgoing_replicat"))
    known = dict(zip(_TIMES, _IN_TRAIL, strict=False))
    times = ", ".join(
        f"unix_micros(CAST({column(known[time])} AS timestamp)) AS {time}"
        if time in known
        else f"CAST(NULL AS bigint) AS {time}"
        for time in _TIMES
    )
    sql = (
        f"SELECT {literal(deployment)} AS deployment, {column('local_database')} AS remote_database,"
        f" CAST(NULL AS string) AS local_database, {path} AS path, {times}"
        f" FROM {view.name} WHERE ({names}) AND {column('outgoing_extract_ts')} IS NOT NULL"
    )
    return Source(deployment, view, sql)


def _path(extract: str, routing_path: str, replicat: str) -> str:
    """The groups of a way; of a routing path without the place that is still open."""
    settled = f"nullif(replace(replace({routing_path}, ',*', ''), '*', ''), '')"
    return f"concat_ws(' ==> ', {extract}, {settled}, {replicat})"
