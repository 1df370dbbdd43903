"""The heartbeat objects of a DuckDB target, and the handling of heartbeats that arrive there.

DuckDB has neither triggers nor jobs, so the one process that may write the file receives and purges heartbeats. A
DuckDB target sends no heartbeats, so it has no seed table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ggshell.connectors.duckdb.session import transaction
from ggshell.errors import ConflictError
from ggshell.monitoring.lag_archive import ArchiveRow
from ggshell.pipeline.heartbeat.lag_views import LAG_HISTORY_VIEW, LAG_VIEW, LagSql
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, INCOMING, OUTGOING, HeartbeatNames
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import duckdb

_WAY = ("local_database", "remote_database", *INCOMING[:3], *OUTGOING[:3])
_WAY_IN = ("local_database", "remote_database", *INCOMING[:3])
_NOW = "make_timestamp(epoch_us(now()))"


def _is_time(name: str) -> bool:
    return name.endswith(("_ts", "_timestamp"))


def create(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames) -> list[str]:
    """Create the tables and views, all or none. Return what was created. Raises ConflictError when they exist."""
    found = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", [*names.heartbeat]
    ).fetchall()
    if found:
        raise ConflictError(f"heartbeat table {names.heartbeat} already exists")
    statements = {
        f"schema {names.schema}": f"CREATE SCHEMA IF NOT EXISTS {quote(names.schema)}",
        f"table {names.heartbeat}": _table(names.heartbeat, HEARTBEAT_COLUMNS),
        f"table {names.history}": _table(names.history, HISTORY_COLUMNS),
        f"view {names.of(LAG_VIEW)}": _lag_view(names),
        f"view {names.of(LAG_HISTORY_VIEW)}": _lag_history_view(names),
    }
    with transaction(connection):
        for statement in statements.values():
            connection.execute(statement)
    return list(statements)


def drop(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames) -> None:
    """Drop the tables and views. Objects that do not exist are not an error."""
    for view in (LAG_HISTORY_VIEW, LAG_VIEW):
        connection.execute(f"DROP VIEW IF EXISTS {quote_table(names.of(view))}")
    for table in (names.history, names.heartbeat):
        connection.execute(f"DROP TABLE IF EXISTS {quote_table(table)}")


def receive(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames, arrived: Iterable[ArchiveRow]) -> None:
    """Store heartbeats, within the caller's transaction.

    A heartbeat without an outgoing path updates the rows of its incoming path that have one. It gets a row of its own
    only if there are none.
    """
    table = quote_table(names.heartbeat)
    for row in arrived:
        beat = row.beat._replace(heartbeat_timestamp=row.beat.incoming_heartbeat_ts)
        values = dict(zip(HEARTBEAT_COLUMNS, beat, strict=True))
        if beat.outgoing_replicat is None:
            moved = [name for name in HEARTBEAT_COLUMNS if name not in (*_WAY, *OUTGOING)]
            sets = ", ".join(f"{name} = {_mark(name)}" for name in moved)
            changed = connection.execute(
                f"UPDATE {table} SET {sets} WHERE {_same(_WAY_IN)} AND outgoing_replicat IS NOT NULL",
                [*(values[name] for name in moved), *(values[name] for name in _WAY_IN)],
            ).fetchall()
            if changed[0][0]:
                continue
        connection.execute(
            f"DELETE FROM {table} WHERE {_same(_WAY_IN)} AND (outgoing_replicat IS NULL OR {_same(_WAY)})",
            [*(values[name] for name in _WAY_IN), *(values[name] for name in _WAY)],
        )
        _insert(connection, names.heartbeat, HEARTBEAT_COLUMNS, beat)
        _insert(connection, names.history, HISTORY_COLUMNS, row.values)


def purge(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames, before: int) -> int:
    """Delete history received before a time (microseconds since 1970). Return the number of rows."""
    rows = connection.execute(
        f"DELETE FROM {quote_table(names.history)} WHERE heartbeat_received_ts < make_timestamp(?)", [before]
    ).fetchall()
    return int(rows[0][0])


def _table(table: TableName, columns: Iterable[str]) -> str:
    described = ", ".join(f"{name} {'TIMESTAMP' if _is_time(name) else 'VARCHAR'}" for name in columns)
    return f"CREATE TABLE {quote_table(table)} ({described})"


def _mark(name: str) -> str:
    return "make_timestamp(?)" if _is_time(name) else "?"


def _same(columns: Iterable[str]) -> str:
    return "(" + " AND ".join(f"{name} IS NOT DISTINCT FROM ?" for name in columns) + ")"


def _insert(
    connection: duckdb.DuckDBPyConnection, table: TableName, columns: tuple[str, ...], values: Iterable[object]
) -> None:
    marks = ", ".join(_mark(name) for name in columns)
    connection.execute(f"INSERT INTO {quote_table(table)} VALUES ({marks})", list(values))


def _seconds(later: str, earlier: str) -> str:
    return f"(epoch_us({later}) - epoch_us({earlier})) / 1e6"


def _path(side: str) -> str:
    names = ", ".join(f"h.{side}_{name}" for name in ("extract", "routing_path", "replicat"))
    return f"'==> ' || nullif(concat_ws(' ==> ', {names}), '') || ' ==>'"


_LAG = LagSql(_seconds, "NULL::DOUBLE", _path)


def _lag_view(names: HeartbeatNames) -> str:
    way = " AND ".join(f"r.{name} IS NOT DISTINCT FROM h.{name}" for name in (*_WAY_IN, "incoming_heartbeat_ts"))
    received = f"coalesce((SELECT max(r.heartbeat_received_ts) FROM {quote_table(names.history)} r WHERE {way}),"
    received += " h.incoming_replicat_ts)"
    return f"""CREATE VIEW {quote_table(names.of(LAG_VIEW))} AS
SELECT {_LAG.lag_columns(_NOW, received)}
  FROM {quote_table(names.heartbeat)} h"""


def _lag_history_view(names: HeartbeatNames) -> str:
    return f"""CREATE VIEW {quote_table(names.of(LAG_HISTORY_VIEW))} AS
SELECT {_LAG.history_columns()}
  FROM {quote_table(names.history)} h"""
