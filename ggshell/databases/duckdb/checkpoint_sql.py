"""The checkpoint table in a DuckDB file: the columns and types that it has in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ggshell.apply.checkpoint_table import VERSION, Columns, from_columns, to_columns, transaction_table
from ggshell.apply.target import CheckpointRow
from ggshell.databases.duckdb.names import quote, quote_table
from ggshell.databases.duckdb.session import execute
from ggshell.errors import ConflictError, NotFoundError
from ggshell.types import TableName

if TYPE_CHECKING:
    import duckdb

_NOW = "make_timestamp(epoch_us(now()))"
"""UTC without a zone, as the table in PostgreSQL has it; like there it is the transaction's time."""

_MAIN = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, seqno integer, rba bigint NOT NULL, audit_ts varchar(29),
  create_ts timestamp NOT NULL, last_update_ts timestamp NOT NULL, current_dir varchar(255) NOT NULL,
  log_bsn varchar(128), log_csn varchar(128), log_xid varchar(128), log_cmplt_csn varchar(128),
  log_cmplt_xids varchar(2000), version integer, PRIMARY KEY (group_name, group_key))"""
_TRANSACTIONS = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, log_cmplt_csn varchar(128) NOT NULL,
  log_cmplt_xids_seq integer NOT NULL, log_cmplt_xids varchar(2000) NOT NULL,
  PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq))"""
_UPGRADES = {"log_bsn": "varchar(128)", "log_cmplt_csn": "varchar(128)", "log_cmplt_xids": "varchar(2000)"}
_COLUMNS = ", ".join(Columns._fields)
_MARKS = ", ".join("?" for _ in Columns._fields)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All of what is done within, or nothing."""
    execute(connection, "BEGIN")
    try:
        yield
    except BaseException:
        execute(connection, "ROLLBACK")
        raise
    execute(connection, "COMMIT")


def exists(connection: duckdb.DuckDBPyConnection, table: TableName) -> bool:
    return bool(
        execute(
            connection,
            "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? AND table_name = ?",
            [*table],
        )
    )


def create(connection: duckdb.DuckDBPyConnection, table: TableName) -> None:
    """Make both tables and the schema they lie in, or nothing.  Raises ConflictError when one exists."""
    for name in (table, transaction_table(table)):
        if exists(connection, name):
            raise ConflictError(f"checkpoint table {name} exists already")
    with transaction(connection):
        execute(connection, f"CREATE SCHEMA IF NOT EXISTS {quote(table.owner)}")
        execute(connection, _MAIN.format(table=quote_table(table)))
        execute(connection, _TRANSACTIONS.format(table=quote_table(transaction_table(table))))


def upgrade(connection: duckdb.DuckDBPyConnection, table: TableName) -> list[str]:
    """Add what a table of an older release lacks; the names of the columns (and of the transaction table) added."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT column_name FROM duckdb_columns()"
        " WHERE database_name = current_database() AND schema_name = ? AND table_name = ?",
        [*table],
    )
    have = {row[0].lower() for row in rows}
    added = [name for name in _UPGRADES if name not in have]
    beside = transaction_table(table)
    with transaction(connection):
        for name in added:
            execute(connection, f"ALTER TABLE {quote_table(table)} ADD COLUMN {name} {_UPGRADES[name]}")
        if not exists(connection, beside):
            execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
            added.append(beside.name)
    execute(connection, f"UPDATE {quote_table(table)} SET version = ?", [VERSION])
    return added


def drop(connection: duckdb.DuckDBPyConnection, table: TableName) -> None:
    """Drop both tables.  Raises NotFoundError when the main one does not exist."""
    require(connection, table)
    with transaction(connection):
        execute(connection, f"DROP TABLE {quote_table(table)}")
        execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: duckdb.DuckDBPyConnection, table: TableName) -> None:
    """Raises NotFoundError unless the checkpoint table exists."""
    if not exists(connection, table):
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def groups(connection: duckdb.DuckDBPyConnection, table: TableName) -> list[tuple[str, int, str, str]]:
    """(group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT group_name, group_key, coalesce(log_csn, ''), strftime(last_update_ts, '%Y-%m-%d %H:%M:%S')"
        f" FROM {quote_table(table)} ORDER BY 1, 2",
    )
    return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def cleanup(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int | None = None) -> int:
    """Remove a group's rows (of one home when ``key`` says which); how many there were."""
    require(connection, table)
    with transaction(connection):
        return _remove(connection, table, group, key)


def _remove(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int | None) -> int:
    gone = 0
    for name in (transaction_table(table), table):
        if exists(connection, name):
            statement = f"DELETE FROM {quote_table(name)} WHERE group_name = ? AND group_key = coalesce(?, group_key)"
            gone = int(execute(connection, statement, [group.upper(), key])[0][0])
    return gone


def read(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int) -> CheckpointRow | None:
    """A group's row, None when it has none."""
    rows = execute(
        connection,
        f"SELECT {_COLUMNS} FROM {quote_table(table)} WHERE group_name = ? AND group_key = ?",
        [group.upper(), key],
    )
    return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None


def insert(
    connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """A group's first row.  Nothing happens when it has one."""
    execute(
        connection,
        f"INSERT INTO {quote_table(table)} (group_name, group_key, {_COLUMNS}, create_ts, last_update_ts, current_dir,"
        f" version) VALUES (?, ?, {_MARKS}, {_NOW}, {_NOW}, ?, ?) ON CONFLICT DO NOTHING",
        [group.upper(), key, *to_columns(row), home[:255], VERSION],
    )


def replace(
    connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """Set a group's row, whatever it says now (ALTER REPLICAT); within the caller's transaction."""
    require(connection, table)
    _remove(connection, table, group, key)
    insert(connection, table, group, key, row, home)


def update(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow) -> bool:
    """Move a group's row within the transaction that holds its rows; false when it is gone."""
    sets = ", ".join(f"{name} = ?" for name in Columns._fields)
    changed = execute(
        connection,
        f"UPDATE {quote_table(table)} SET {sets}, last_update_ts = {_NOW} WHERE group_name = ? AND group_key = ?",
        [*to_columns(row), group.upper(), key],
    )
    return bool(changed[0][0])
