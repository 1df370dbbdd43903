"""The checkpoint table in PostgreSQL. Its columns and types are GoldenGate's, so GoldenGate's tools can read it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.describe import table_id
from ggshell.connectors.postgres.session import execute
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
from ggshell.types import Csn, TableName, TrailPosition, postgres_literal, quote_table

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

GROUP_LOCK = 0x6767_0000_0000
"""Combined with a group's key, this is the advisory lock that its Replicat holds while it is connected."""
_COLUMNS = ", ".join(Columns._fields)
_UPDATE = """WITH moved AS (UPDATE {table} SET ({columns}) = ROW({values}), last_update_ts = localtimestamp
  WHERE group_name = {group} AND group_key = {key} RETURNING 1) SELECT 1 / count(*)::int{more} FROM moved"""


transaction = session.transaction
"""A transaction: all changes within it are made, or none."""


def create(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Create both tables.

    A transaction table that was left without its checkpoint table is kept, because it records what is applied. Raises
    ConflictError when the checkpoint table exists.
    """
    beside = transaction_table(table)
    left = table_id(connection, beside) is not None
    if table_id(connection, table) is not None:
        hint = "" if left else f"run UPGRADE CHECKPOINTTABLE {table} to add the missing {beside}"
        raise ConflictError(f"checkpoint table {table} already exists", hint=hint)
    with transaction(connection):
        execute(connection, _MAIN.format(table=quote_table(table)))
        if not left:
            execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
        moment = execute(connection, "SELECT localtimestamp(0)::text")[0][0]
        execute(connection, f"COMMENT ON TABLE {quote_table(table)} IS '{CREATED}{moment}'")


def script(table: str) -> str:
    """The statements that create both tables, to run by hand when the login may not create them."""
    return f"{_MAIN.format(table=table)};\n\n{_TRANSACTIONS.format(table=f'{table}_lox')};\n"


def created(connection: psycopg.Connection[Any], table: TableName) -> str:
    """When the table was created. For a table of another program, when its first row was; empty if it has no rows."""
    require(connection, table)
    comment = execute(connection, "SELECT obj_description(%s::regclass)", [quote_table(table)])[0][0] or ""
    if comment.startswith(CREATED):
        return str(comment.removeprefix(CREATED))
    return execute(connection, f"SELECT min(create_ts)::timestamp(0)::text FROM {quote_table(table)}")[0][0] or ""


def upgrade(connection: psycopg.Connection[Any], table: TableName) -> list[str]:
    """Add what a table of an older release lacks. Return the names of the added columns and tables."""
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
    """Drop both tables. Raises NotFoundError when the checkpoint table does not exist."""
    require(connection, table)
    with transaction(connection):
        execute(connection, f"DROP TABLE {quote_table(table)}")
        execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Raise NotFoundError unless the checkpoint table exists."""
    if table_id(connection, table) is None:
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def groups(connection: psycopg.Connection[Any], table: TableName) -> list[tuple[str, int, str, str]]:
    """The (group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    rows = execute(
        connection,
        "SELECT group_name, group_key, coalesce(log_csn, ''), last_update_ts::timestamp(0)::text"
        f" FROM {quote_table(table)} ORDER BY 1, 2",
    )
    return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def busy(connection: psycopg.Connection[Any], table: TableName) -> list[str]:
    """The groups of the table's rows that a Replicat of any home is applying now: it holds the lock of its key."""
    rows = execute(
        connection,
        f"SELECT DISTINCT group_name FROM {quote_table(table)} JOIN pg_locks ON locktype = 'advisory' AND objsubid = 1"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND classid::bigint << 32 | objid::bigint = group_key | %s ORDER BY 1",
        [GROUP_LOCK],
    )
    return [str(row[0]) for row in rows]


def cleanup(connection: psycopg.Connection[Any], table: TableName, group: str, key: int | None = None) -> int:
    """Remove a group's rows (of one home if ``key`` is given). Return how many there were in the checkpoint table."""
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
    """The row of a group, or None if it has none."""
    rows = execute(
        connection,
        f"SELECT {_COLUMNS} FROM {quote_table(table)} WHERE group_name = %s AND group_key = %s",
        [group.upper(), key],
    )
    return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None


def applied_above(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, low: Csn | None
) -> list[str]:
    """The ids of transactions that appliers of a parallel Replicat have applied above the low watermark.

    They are read from the transaction table.
    """
    beside = transaction_table(table)
    if table_id(connection, beside) is None:
        return []
    found = execute(
        connection,
        f"SELECT log_cmplt_csn, log_cmplt_xids FROM {quote_table(beside)} WHERE group_name = %s AND group_key = %s"
        " ORDER BY log_cmplt_xids_seq",
        [group.upper(), key],
    )
    return [xid for csn, text in found if text and (low is None or Csn.parse(csn) > low) for xid in text.split(",")]


def require_both(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Raise NotFoundError unless both the checkpoint table and its transaction table exist."""
    require(connection, table)
    beside = transaction_table(table)
    if table_id(connection, beside) is None:
        raise NotFoundError(
            f"transaction table {beside} of checkpoint table {table} does not exist",
            hint=f"restore it, or run UPGRADE CHECKPOINTTABLE {table} to add it empty",
        )


def names_begin(connection: psycopg.Connection[Any], table: TableName, group: str, key: int) -> None:
    """Insert the marker row into the transaction table.

    While it exists, transactions that are not named in the table are not applied above the group's row.
    """
    execute(
        connection,
        f"INSERT INTO {quote_table(transaction_table(table))} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq,"
        " log_cmplt_xids) VALUES (%s, %s, '0', 0, '') ON CONFLICT DO NOTHING",
        [group.upper(), key],
    )


def forget_names(connection: psycopg.Connection[Any], table: TableName, group: str, key: int) -> None:
    """Remove the names of transactions that were applied above a row that was removed."""
    execute(
        connection,
        f"DELETE FROM {quote_table(transaction_table(table))} WHERE group_name = %s AND group_key = %s"
        " AND log_cmplt_xids_seq > 0",
        [group.upper(), key],
    )


def has_names(connection: psycopg.Connection[Any], table: TableName, group: str, key: int) -> bool:
    """Whether the marker row of ``names_begin`` exists. Without it, rows of the transaction table were lost."""
    statement = (
        f"SELECT 1 FROM {quote_table(transaction_table(table))} WHERE group_name = %s AND group_key = %s"
        " AND log_cmplt_xids_seq = 0"
    )
    return bool(execute(connection, statement, [group.upper(), key]))


def insert(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> bool:
    """Insert a group's first row. Return False if the group already has a row, which stays unchanged."""
    added = execute(
        connection,
        f"INSERT INTO {quote_table(table)} (group_name, group_key, {_COLUMNS}, create_ts, last_update_ts, current_dir,"
        " version) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, localtimestamp, localtimestamp, %s, %s)"
        " ON CONFLICT DO NOTHING RETURNING 1",
        [group.upper(), key, *to_columns(row), home[:255], VERSION],
    )
    return bool(added)


def move(connection: psycopg.Connection[Any], table: TableName, group: str, key: int, position: TrailPosition) -> None:
    """Set a group's position in its trail. What it records about applied transactions stays."""
    execute(
        connection,
        f"UPDATE {quote_table(table)} SET seqno = %s, rba = %s WHERE group_name = %s AND group_key = %s",
        [position.seqno, position.rba, group.upper(), key],
    )


def replace(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """Replace a group's row, whatever its content (ALTER REPLICAT)."""
    cleanup(connection, table, group, key)
    insert(connection, table, group, key, row, home)


def set_columns(table: TableName) -> str:
    """The statement that moves a group's row and returns it; parameters: the columns, the group and its key."""
    return (
        f"UPDATE {quote_table(table)} SET ({_COLUMNS}) = ROW ({', '.join(['%s'] * len(Columns._fields))}),"
        " last_update_ts = localtimestamp WHERE group_name = %s AND group_key = %s RETURNING 1"
    )


@lru_cache(maxsize=4096)
def update_text(table: TableName, more: str = "") -> str:
    """The UPDATE of a group's row, with the parameters of ``update_values``. It fails when the row is gone.

    ``more`` is an expression to return in addition.
    """
    marks = ", ".join(f"${number}::{kind}" for number, kind in enumerate(_KINDS, 1))
    count = len(_KINDS)
    return _UPDATE.format(
        table=quote_table(table),
        columns=_COLUMNS,
        values=marks,
        group=f"${count + 1}",
        key=f"${count + 2}",
        more=f", {more}" if more else "",
    )


_KINDS = ("integer", "bigint", "text", "text", "text", "text", "text", "text")


def update_values(row: CheckpointRow, group: str, key: int) -> list[bytes | None]:
    """The parameters of ``update_text``, as text."""
    values = [None if value is None else str(value).encode() for value in to_columns(row)]
    return [*values, group.upper().encode(), b"%d" % key]


def update_literally(table: TableName, row: CheckpointRow, group: str, key: int) -> str:
    """The UPDATE of ``update_text`` without parameters, for a query of several statements."""
    values = ", ".join(_literal(value) for value in to_columns(row))
    return _UPDATE.format(
        table=quote_table(table),
        columns=_COLUMNS,
        values=values,
        group=_literal(group.upper()),
        key=key,
        more="",
    )


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return postgres_literal(value)
