"""The checkpoint table in a DuckDB file. It has the same columns and types as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ggshell.connectors.duckdb.session import execute
from ggshell.errors import ConflictError, NotFoundError
from ggshell.pipeline.apply.checkpoint_table import (
    CREATED,
    VERSION,
    Columns,
    from_columns,
    to_columns,
    transaction_table,
)
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName, TrailPosition, quote, quote_table

if TYPE_CHECKING:
    import duckdb

_NOW = "make_timestamp(epoch_us(now()))"
"""UTC without a time zone, as in the PostgreSQL table. As there, it is the time of the transaction."""

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
    """A transaction: all changes within it are made, or none."""
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
    """Create both tables and their schema, or nothing. A transaction table left without its checkpoint table is kept.

    Raises ConflictError when the checkpoint table exists.
    """
    beside = transaction_table(table)
    left = exists(connection, beside)
    if exists(connection, table):
        hint = "" if left else f"run UPGRADE CHECKPOINTTABLE {table} to add the missing {beside}"
        raise ConflictError(f"checkpoint table {table} already exists", hint=hint)
    with transaction(connection):
        execute(connection, f"CREATE SCHEMA IF NOT EXISTS {quote(table.owner)}")
        execute(connection, _MAIN.format(table=quote_table(table)))
        if not left:
            execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
        moment = execute(connection, "SELECT strftime(localtimestamp, '%Y-%m-%d %H:%M:%S')")[0][0]
        execute(connection, f"COMMENT ON TABLE {quote_table(table)} IS '{CREATED}{moment}'")


def script(table: str) -> str:
    """The statements that create both tables, to run by hand when the login may not create them."""
    return f"{_MAIN.format(table=table)};\n\n{_TRANSACTIONS.format(table=f'{table}_lox')};\n"


def created(connection: duckdb.DuckDBPyConnection, table: TableName) -> str:
    """When the table was created. For a table of another program, when its first row was; empty if it has no rows."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? AND table_name = ?",
        [*table],
    )
    comment = str(rows[0][0] or "")
    if comment.startswith(CREATED):
        return comment.removeprefix(CREATED)
    first = f"SELECT strftime(min(create_ts), '%Y-%m-%d %H:%M:%S') FROM {quote_table(table)}"
    return execute(connection, first)[0][0] or ""


def upgrade(connection: duckdb.DuckDBPyConnection, table: TableName) -> list[str]:
    """Add what a table of an older release lacks. Return the names of the added columns and tables."""
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
    """Drop both tables. Raises NotFoundError when the checkpoint table does not exist."""
    require(connection, table)
    with transaction(connection):
        execute(connection, f"DROP TABLE {quote_table(table)}")
        execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: duckdb.DuckDBPyConnection, table: TableName) -> None:
    """Raise NotFoundError unless the checkpoint table exists."""
    if not exists(connection, table):
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def groups(connection: duckdb.DuckDBPyConnection, table: TableName) -> list[tuple[str, int, str, str]]:
    """The (group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT group_name, group_key, coalesce(log_csn, ''), strftime(last_update_ts, '%Y-%m-%d %H:%M:%S')"
        f" FROM {quote_table(table)} ORDER BY 1, 2",
    )
    return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def busy(connection: duckdb.DuckDBPyConnection, table: TableName) -> list[str]:
    """The groups that a Replicat is applying now. Always empty: such a Replicat would hold the file."""
    require(connection, table)
    return []


def cleanup(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int | None = None) -> int:
    """Remove a group's rows (of one home if ``key`` is given). Return how many there were in the checkpoint table."""
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
    """The row of a group, or None if it has none."""
    rows = execute(
        connection,
        f"SELECT {_COLUMNS} FROM {quote_table(table)} WHERE group_name = ? AND group_key = ?",
        [group.upper(), key],
    )
    return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None


def insert(
    connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> bool:
    """Insert a group's first row. Return False if the group already has a row, which stays unchanged."""
    if read(connection, table, group, key) is not None:
        return False
    execute(
        connection,
        f"INSERT INTO {quote_table(table)} (group_name, group_key, {_COLUMNS}, create_ts, last_update_ts, current_dir,"
        f" version) VALUES (?, ?, {_MARKS}, {_NOW}, {_NOW}, ?, ?) ON CONFLICT DO NOTHING",
        [group.upper(), key, *to_columns(row), home[:255], VERSION],
    )
    return True


def move(
    connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, position: TrailPosition
) -> None:
    """Set a group's position in its trail. What it records about applied transactions stays."""
    execute(
        connection,
        f"UPDATE {quote_table(table)} SET seqno = ?, rba = ? WHERE group_name = ? AND group_key = ?",
        [position.seqno, position.rba, group.upper(), key],
    )


def replace(
    connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """Replace a group's row, whatever its content (ALTER REPLICAT), within the caller's transaction."""
    require(connection, table)
    _remove(connection, table, group, key)
    insert(connection, table, group, key, row, home)


def update(connection: duckdb.DuckDBPyConnection, table: TableName, group: str, key: int, row: CheckpointRow) -> bool:
    """Update a group's row within the transaction that contains its rows. Return False if the row is gone."""
    sets = ", ".join(f"{name} = ?" for name in Columns._fields)
    changed = execute(
        connection,
        f"UPDATE {quote_table(table)} SET {sets}, last_update_ts = {_NOW} WHERE group_name = ? AND group_key = ?",
        [*to_columns(row), group.upper(), key],
    )
    return bool(changed[0][0])
