"""The heartbeat objects of a DuckDB target, and what a heartbeat does that arrives there.

DuckDB has neither triggers nor jobs: the one process that may write the file receives, and purges.  It sends no heartbeats,
so there is no seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ggshell.errors import ConflictError
from ggshell.heartbeat.archive import ArchiveRow
from ggshell.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, INCOMING, OUTGOING, HeartbeatNames
from ggshell.types import TableName

if TYPE_CHECKING:
    import duckdb

LAG_VIEW, LAG_HISTORY_VIEW = "gg_lag", "gg_lag_history"
_WAY = ("local_database", "remote_database", *INCOMING[:3], *OUTGOING[:3])
_WAY_IN = ("local_database", "remote_database", *INCOMING[:3])
_NOW = "make_timestamp(epoch_us(now()))"


def quote(name: TableName) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def _is_time(name: str) -> bool:
    return name.endswith(("_ts", "_timestamp"))


def create(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames) -> list[str]:
    """Make tables and views, all or none; what was made.  Raises ConflictError when they are there."""
    found = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", [*names.heartbeat]
    ).fetchall()
    if found:
        raise ConflictError(f"heartbeat table {names.heartbeat} exists already")
    statements = {
        f"schema {names.schema}": f"CREATE SCHEMA IF NOT EXISTS {quote(names.heartbeat).partition('.')[0]}",
        f"table {names.heartbeat}": _table(names.heartbeat, HEARTBEAT_COLUMNS),
        f"table {names.history}": _table(names.history, HISTORY_COLUMNS),
        f"view {names.of(LAG_VIEW)}": _lag_view(names),
        f"view {names.of(LAG_HISTORY_VIEW)}": _lag_history_view(names),
    }
    connection.execute("BEGIN")
    try:
        for statement in statements.values():
            connection.execute(statement)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return list(statements)


def drop(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames) -> None:
    """Remove them; what is not there is no error."""
    for view in (LAG_HISTORY_VIEW, LAG_VIEW):
        connection.execute(f"DROP VIEW IF EXISTS {quote(names.of(view))}")
    for table in (names.history, names.heartbeat):
        connection.execute(f"DROP TABLE IF EXISTS {quote(table)}")


def receive(connection: duckdb.DuckDBPyConnection, names: HeartbeatNames, arrived: Iterable[ArchiveRow]) -> None:
    """Take heartbeats in, within the caller's transaction.

    One that knows no way back refreshes the rows of its way that do, and stands for itself only where there is none.
    """
    table = quote(names.heartbeat)
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
    """Delete history that came before a moment (microseconds since 1970); how many rows there were."""
    rows = connection.execute(
        f"DELETE FROM {quote(names.history)} WHERE heartbeat_received_ts < make_timestamp(?)", [before]
    ).fetchall()
    return int(rows[0][0])


def _table(table: TableName, columns: Iterable[str]) -> str:
    described = ", ".join(f"{name} {'TIMESTAMP' if _is_time(name) else 'VARCHAR'}" for name in columns)
    return f"CREATE TABLE {quote(table)} ({described})"


def _mark(name: str) -> str:
    return "make_timestamp(?)" if _is_time(name) else "?"


def _same(columns: Iterable[str]) -> str:
    return "(" + " AND ".join(f"{name} IS NOT DISTINCT FROM ?" for name in columns) + ")"


def _insert(
    connection: duckdb.DuckDBPyConnection, table: TableName, columns: tuple[str, ...], values: Iterable[object]
) -> None:
    marks = ", ".join(_mark(name) for name in columns)
    connection.execute(f"INSERT INTO {quote(table)} VALUES ({marks})", list(values))


def _seconds(later: str, earlier: str) -> str:
    return f"(epoch_us({later}) - epoch_us({earlier})) / 1e6"


def _path(side: str) -> str:
    names = ", ".join(f"h.{side}_{name}" for name in ("extract", "routing_path", "replicat"))
    return f"'==> ' || nullif(concat_ws(' ==> ', {names}), '') || ' ==>'"


def _lag_view(names: HeartbeatNames) -> str:
    way = " AND ".join(f"r.{name} IS NOT DISTINCT FROM h.{name}" for name in (*_WAY_IN, "incoming_heartbeat_ts"))
    received = f"coalesce((SELECT max(r.heartbeat_received_ts) FROM {quote(names.history)} r WHERE {way}),"
    received += " h.incoming_replicat_ts)"
    return f"""CREATE VIEW {quote(names.of(LAG_VIEW))} AS
SELECT h.local_database, {_NOW} AS current_local_ts, h.remote_database,
       {_seconds(_NOW, "h.incoming_heartbeat_ts")} AS incoming_heartbeat_age,
       {_path("incoming")} AS incoming_path,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_lag,
       {_seconds(_NOW, "h.outgoing_heartbeat_ts")} AS outgoing_heartbeat_age,
       {_path("outgoing")} AS outgoing_path,
       {_seconds("h.outgoing_replicat_ts", "h.outgoing_heartbeat_ts")} AS outgoing_lag,
       h.incoming_extract_restart_csn AS remote_extract_restart_csn,
       h.remote_database AS remote_database_db_unique_name,
       h.incoming_extract_restart_ts AS remote_extract_restart_csn_time,
       {_seconds(_NOW, "h.incoming_extract_restart_ts")} AS remote_db_oldest_open_txn_age,
       h.incoming_replicat_lw_csn AS local_replicat_lwm_csn
  FROM {quote(names.heartbeat)} h"""


def _parts(side: str, received: str | None) -> str:
    sent, extract, routing, replicat = (
        f"h.{side}_{name}_ts" for name in ("heartbeat", "extract", "routing", "replicat")
    )
    applied = _seconds(received, replicat) if received else "NULL::DOUBLE"
    return f"""{_seconds(extract, sent)} AS {side}_extract_lag,
       {_seconds(routing, extract)} AS {side}_routine_lag,
       {_seconds(replicat, f"coalesce({routing}, {extract})")} AS {side}_replicat_read_lag,
       {applied} AS {side}_replicat_lag"""


def _lag_history_view(names: HeartbeatNames) -> str:
    received = "h.heartbeat_received_ts"
    return f"""CREATE VIEW {quote(names.of(LAG_HISTORY_VIEW))} AS
SELECT h.local_database, h.heartbeat_received_ts, h.remote_database,
       h.remote_database AS db_name, h.remote_database AS db_unique_name,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_heartbeat_age,
       {_path("incoming")} AS incoming_path,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_lag,
       {_seconds(received, "h.outgoing_heartbeat_ts")} AS outgoing_heartbeat_age,
       {_path("outgoing")} AS outgoing_path,
       {_seconds("h.outgoing_replicat_ts", "h.outgoing_heartbeat_ts")} AS outgoing_lag,
       h.source_extract_restart_csn AS remote_extract_restart_csn,
       h.source_extract_restart_csn_ts AS remote_extract_restart_csn_time,
       {_seconds(received, "h.source_extract_restart_csn_ts")} AS remote_db_oldest_open_txn_age,
       h.replicat_low_watermark_csn AS local_replicat_lwm_csn,
       {_parts("incoming", received)},
       {_parts("outgoing", None)}
  FROM {quote(names.history)} h"""
