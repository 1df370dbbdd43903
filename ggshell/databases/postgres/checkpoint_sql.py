"""The checkpoint table in PostgreSQL: GoldenGate's columns and types, so that its tools and scripts can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.apply.checkpoint_table import VERSION, Columns, from_columns, to_columns, transaction_table
from ggshell.apply.target import CheckpointRow
from ggshell.databases.postgres import session
from ggshell.databases.postgres.describe import quote_table, table_id
from ggshell.databases.postgres.session import execute
from ggshell.errors import ConflictError, NotFoundError
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    import psycopg

_MAIN = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, seqno integer, rba bigint NOT NULL, audit_ts varchar(29),
  create_ts timestamp NOT NULL, last_update_ts timestamp NOT NULL, current_dir varchar(255) NOT NULL,
  log_bsn varchar(128), log_csn varchar(128), log_xid varchar(128), log_cmplt_csn varchar(128),
  log_cmplt_xids varchar(2000), version integer, PRIMARY KEY (group_name, group_key)) WITH (fillfactor = 20)"""
_TRANSACTIONS = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, log_cmplt_csn varchar(128) NOT NULL,
  log_cmplt_xids_seq integer NOT NULL, log_cmplt_xids varchar(2000) NOT NULL,
  PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq))"""
_UPGRADES = {"log_bsn": "varchar(128)", "log_cmplt_csn": "varchar(128)", "log_cmplt_xids": "varchar(2000)"}

_COLUMNS = ", ".join(Columns._fields)
_UPDATE = """WITH moved AS (UPDATE {table} SET ({columns}) = ROW({values}), last_update_ts = localtimestamp
  WHERE group_name = {group} AND group_key = {key} RETURNING 1) SELECT 1 / count(*)::int FROM moved"""


transaction = session.transaction
"""All of what is done within, or nothing."""


def create(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Make both tables, or none.  Raises ConflictError when one exists."""
    for name in (table, transaction_table(table)):
        if table_id(connection, name) is not None:
            raise ConflictError(f"checkpoint table {name} exists already")
    with transaction(connection):
        execute(connection, _MAIN.format(table=quote_table(table)))
        execute(connection, _TRANSACTIONS.format(table=quote_table(transaction_table(table))))


def upgrade(connection: psycopg.Connection[Any], table: TableName) -> list[str]:
    """Add what a table of an older release lacks; the names of the columns (and of the transaction table) added."""
    require(connection, table)
    have = {
        row[0]
        for row in execute(
            connection,
            "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            [table_id(connection, table)],
        )
    }
    added = [name for name in _UPGRADES if name not in have]
    beside = transaction_table(table)
    with transaction(connection):
        for name in added:
            execute(connection, f"ALTER TABLE {quote_table(table)} ADD COLUMN {name} {_UPGRADES[name]}")
        if table_id(connection, beside) is None:
            execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
            added.append(beside.name)
        execute(connection, f"UPDATE {quote_table(table)} SET version = %s", [VERSION])
    return added


def drop(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Drop both tables.  Raises NotFoundError when the main one does not exist."""
    require(connection, table)
    with transaction(connection):
        execute(connection, f"DROP TABLE {quote_table(table)}")
        execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Raises NotFoundError unless the checkpoint table exists."""
    if table_id(connection, table) is None:
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def groups(connection: psycopg.Connection[Any], table: TableName) -> list[tuple[str, int, str, str]]:
    """(group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT group_name, group_key, coalesce(log_csn, ''), last_update_ts::timestamp(0)::text"
        f" FROM {quote_table(table)} ORDER BY 1, 2",
    )
    return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def cleanup(connection: psycopg.Connection[Any], table: TableName, group: str, key: int | None = None) -> int:
    """Remove a group's rows (of one home when ``key`` says which); how many there were."""
    require(connection, table)
    gone = 0
    with transaction(connection):
        for name in (transaction_table(table), table):
            if table_id(connection, name) is None:
                continue
            rows = execute(
                connection,
                f"DELETE FROM {quote_table(name)} WHERE group_name = %s AND group_key = coalesce(%s, group_key)"
                " RETURNING 1",
                [group.upper(), key],
            )
            gone = len(rows)
    return gone


def read(connection: psycopg.Connection[Any], table: TableName, group: str, key: int) -> CheckpointRow | None:
    """A group's row, None when it has none."""
    rows = execute(
        connection,
        f"SELECT {_COLUMNS} FROM {quote_table(table)} WHERE group_name = %s AND group_key = %s",
        [group.upper(), key],
    )
    return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None


def applied_above(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, low: Csn | None
) -> list[str]:
    """The ids of what lanes of a parallel Replicat have applied above the low watermark, by the transaction table."""
    beside = transaction_table(table)
    if table_id(connection, beside) is None:
        return []
    found = execute(
        connection,
        f"SELECT log_cmplt_csn, log_cmplt_xids FROM {quote_table(beside)} WHERE group_name = %s AND group_key = %s"
        " ORDER BY log_cmplt_xids_seq",
        [group.upper(), key],
    )
    return [xid for csn, text in found if low is None or Csn.parse(csn) > low for xid in text.split(",")]


def insert(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> bool:
    """A group's first row; False when it has one, which stays as it is."""
    added = execute(
        connection,
        f"INSERT INTO {quote_table(table)} (group_name, group_key, {_COLUMNS}, create_ts, last_update_ts, current_dir,"
        " version) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, localtimestamp, localtimestamp, %s, %s)"
        " ON CONFLICT DO NOTHING RETURNING 1",
        [group.upper(), key, *to_columns(row), home[:255], VERSION],
    )
    return bool(added)


def move(connection: psycopg.Connection[Any], table: TableName, group: str, key: int, position: TrailPosition) -> None:
    """Set a group's place in its trail; what it knows of the transactions that are applied stays."""
    execute(
        connection,
        f"UPDATE {quote_table(table)} SET seqno = %s, rba = %s WHERE group_name = %s AND group_key = %s",
        [position.seqno, position.rba, group.upper(), key],
    )


def replace(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """Set a group's row, whatever it says now (ALTER REPLICAT)."""
    cleanup(connection, table, group, key)
    insert(connection, table, group, key, row, home)


def set_columns(table: TableName) -> str:
    """Moves a group's row and returns it; parameters: the columns, the group and its key."""
    return (
        f"UPDATE {quote_table(table)} SET ({_COLUMNS}) = ROW ({', '.join(['%s'] * len(Columns._fields))}),"
        " last_update_ts = localtimestamp WHERE group_name = %s AND group_key = %s RETURNING 1"
    )


def update_text(table: TableName) -> str:
    """The UPDATE of a group's row, with parameters as ``update_values`` gives them; it fails when the row is gone."""
    marks = ", ".join(f"${number}::{kind}" for number, kind in enumerate(_KINDS, 1))
    count = len(_KINDS)
    return _UPDATE.format(
        table=quote_table(table), columns=_COLUMNS, values=marks, group=f"${count + 1}", key=f"${count + 2}"
    )


_KINDS = ("integer", "bigint", "text", "text", "text", "text", "text", "text")


def update_values(row: CheckpointRow, group: str, key: int) -> list[bytes | None]:
    """The parameters of ``update_text``, as text."""
    values = [None if value is None else str(value).encode() for value in to_columns(row)]
    return [*values, group.upper().encode(), b"%d" % key]


def update_literally(table: TableName, row: CheckpointRow, group: str, key: int) -> str:
    """The same UPDATE without parameters, for a query of several statements."""
    values = ", ".join(_literal(value) for value in to_columns(row))
    return _UPDATE.format(
        table=quote_table(table), columns=_COLUMNS, values=values, group=_literal(group.upper()), key=key
    )


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    # E'' means the same whatever standard_conforming_strings says.
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"
