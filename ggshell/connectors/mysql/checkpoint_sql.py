"""The checkpoint table in MariaDB or MySQL. It has the same columns as in PostgreSQL; its times are in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.session import execute
from ggshell.connectors.mysql.statements import quote_table
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
from ggshell.types import Csn, TableName, TrailPosition, text_literal

if TYPE_CHECKING:
    from pymysql.connections import Connection

_MAIN = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, seqno integer, rba bigint NOT NULL, audit_ts varchar(29),
  create_ts datetime(6) NOT NULL, last_update_ts datetime(6) NOT NULL, current_dir varchar(255) NOT NULL,
  log_bsn varchar(128), log_csn varchar(128), log_xid varchar(128), log_cmplt_csn varchar(128),
  log_cmplt_xids varchar(2000), version integer, PRIMARY KEY (group_name, group_key))
  ENGINE = InnoDB CHARACTER SET utf8mb4{more}"""
_TRANSACTIONS = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, log_cmplt_csn varchar(128) NOT NULL,
  log_cmplt_xids_seq integer NOT NULL, log_cmplt_xids varchar(2000) NOT NULL,
  PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq)) ENGINE = InnoDB CHARACTER SET utf8mb4"""
MOST_APPLIERS = 128
_UPGRADES = {"log_bsn": "varchar(128)", "log_cmplt_csn": "varchar(128)", "log_cmplt_xids": "varchar(2000)"}
_COLUMNS = ", ".join(Columns._fields)
_MARKS = ", ".join(["%s"] * len(Columns._fields))
_MINE = "group_name = %s AND group_key = %s"
_SECONDS = "DATE_FORMAT({0}, '%%Y-%%m-%%d %%H:%%i:%%s')"
_DDL: Final = -1
"""The number of the row of the transaction table that names the DDL statement that was begun last."""


def group_lock(key: int) -> str:
    """The name of the lock that a group's Replicat holds while it is connected."""
    return f"ggshell:{key}"


def applier_lock(key: int, number: int) -> str:
    """The name of the lock that an applier of a parallel Replicat holds."""
    return f"{group_lock(key)}:{number}"


@contextmanager
def transaction(connection: Connection[Any]) -> Iterator[None]:
    """A transaction: all changes of rows within it are made, or none. The server commits each DDL statement at once."""
    execute(connection, "BEGIN")
    try:
        yield
    except BaseException:
        execute(connection, "ROLLBACK")
        raise
    execute(connection, "COMMIT")


def _sql(table: TableName) -> str:
    """The name of a table in a statement with parameters."""
    return quote_table(table).replace("%", "%%")


def exists(connection: Connection[Any], table: TableName) -> bool:
    text = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return bool(execute(connection, text, [*table]))


def create(connection: Connection[Any], table: TableName) -> None:
    """Create both tables. A transaction table that was left without its checkpoint table is kept.

    Raises ConflictError when the checkpoint table exists.
    """
    beside = transaction_table(table)
    left = exists(connection, beside)
    if exists(connection, table):
        hint = "" if left else f"run UPGRADE CHECKPOINTTABLE {table} to add the missing {beside}"
        raise ConflictError(f"checkpoint table {table} already exists", hint=hint)
    if not left:
        execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
    moment = execute(connection, "SELECT CAST(UTC_TIMESTAMP() AS CHAR)")[0][0]
    execute(connection, _MAIN.format(table=quote_table(table), more=f" COMMENT '{CREATED}{moment}'"))


def script(table: str) -> str:
    """The statements that create both tables, to run by hand when the login may not create them."""
    return f"{_MAIN.format(table=table, more='')};\n\n{_TRANSACTIONS.format(table=f'{table}_lox')};\n"


def created(connection: Connection[Any], table: TableName) -> str:
    """When the table was created. For a table of another program, when its first row was; empty if it has no rows."""
    require(connection, table)
    text = "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    comment = str(execute(connection, text, [*table])[0][0] or "")
    if comment.startswith(CREATED):
        return comment.removeprefix(CREATED)
    first = f"SELECT {_SECONDS.format('MIN(create_ts)')} FROM {_sql(table)} WHERE 1 = %s"
    return execute(connection, first, [1])[0][0] or ""


def upgrade(connection: Connection[Any], table: TableName) -> list[str]:
    """Add what a table of an older release lacks. Return the names of the added columns and tables."""
    require(connection, table)
    text = "SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    have = {str(row[0]) for row in execute(connection, text, [*table])}
    added = [name for name in _UPGRADES if name not in have]
    for name in added:
        execute(connection, f"ALTER TABLE {quote_table(table)} ADD COLUMN {name} {_UPGRADES[name]}")
    beside = transaction_table(table)
    if not exists(connection, beside):
        execute(connection, _TRANSACTIONS.format(table=quote_table(beside)))
        added.append(beside.name)
    execute(connection, f"UPDATE {_sql(table)} SET version = %s", [VERSION])
    return added


def drop(connection: Connection[Any], table: TableName) -> None:
    """Drop both tables. Raises NotFoundError when the checkpoint table does not exist."""
    require(connection, table)
    execute(connection, f"DROP TABLE {quote_table(table)}")
    execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: Connection[Any], table: TableName) -> None:
    """Raise NotFoundError unless the checkpoint table exists."""
    if not exists(connection, table):
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def require_both(connection: Connection[Any], table: TableName) -> None:
    """Raise NotFoundError unless both the checkpoint table and its transaction table exist."""
    require(connection, table)
    beside = transaction_table(table)
    if not exists(connection, beside):
        raise NotFoundError(
            f"transaction table {beside} of checkpoint table {table} does not exist",
            hint=f"restore it, or run UPGRADE CHECKPOINTTABLE {table} to add it empty",
        )


def groups(connection: Connection[Any], table: TableName) -> list[tuple[str, int, str, str]]:
    """The (group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    rows = execute(
        connection,
        f"SELECT group_name, group_key, COALESCE(log_csn, ''), {_SECONDS.format('last_update_ts')}"
        f" FROM {_sql(table)} WHERE 1 = %s ORDER BY 1, 2",
        [1],
    )
    return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]


def busy(connection: Connection[Any], table: TableName) -> list[str]:
    """The groups of the table's rows that a Replicat of any home is applying now: it holds the lock of its key."""
    text = f"SELECT DISTINCT group_name FROM {_sql(table)} WHERE IS_USED_LOCK(CONCAT(%s, group_key)) IS NOT NULL"
    return [str(row[0]) for row in execute(connection, f"{text} ORDER BY 1", [group_lock(0)[:-1]])]


def cleanup(connection: Connection[Any], table: TableName, group: str, key: int | None = None) -> int:
    """Remove a group's rows (of one home if ``key`` is given). Return how many there were in the checkpoint table."""
    require(connection, table)
    with transaction(connection):
        return _remove(connection, table, group, key)


def _remove(connection: Connection[Any], table: TableName, group: str, key: int | None) -> int:
    gone = 0
    for name in (transaction_table(table), table):
        if exists(connection, name):
            text = f"DELETE FROM {_sql(name)} WHERE group_name = %s AND group_key = COALESCE(%s, group_key)"
            execute(connection, text, [group.upper(), key])
            gone = int(execute(connection, "SELECT ROW_COUNT()")[0][0])
    return gone


def read(connection: Connection[Any], table: TableName, group: str, key: int) -> CheckpointRow | None:
    """The row of a group, or None if it has none."""
    rows = execute(connection, f"SELECT {_COLUMNS} FROM {_sql(table)} WHERE {_MINE}", [group.upper(), key])
    return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None


def applied_above(connection: Connection[Any], table: TableName, group: str, key: int, low: Csn | None) -> list[str]:
    """The ids of transactions that appliers of a parallel Replicat have applied above the low watermark."""
    beside = transaction_table(table)
    if not exists(connection, beside):
        return []
    text = f"SELECT log_cmplt_csn, log_cmplt_xids FROM {_sql(beside)} WHERE {_MINE} AND log_cmplt_xids_seq > {_DDL}"
    text += " ORDER BY log_cmplt_xids_seq"
    found = execute(connection, text, [group.upper(), key])
    return [xid for csn, ids in found if ids and (low is None or Csn.parse(csn) > low) for xid in ids.split(",")]


def names_begin(connection: Connection[Any], table: TableName, group: str, key: int) -> None:
    """Insert the marker row into the transaction table, unless it exists.

    While it exists, transactions that are not named in the table are not applied above the group's row.
    """
    execute(
        connection,
        f"INSERT INTO {_sql(transaction_table(table))} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq,"
        " log_cmplt_xids) VALUES (%s, %s, '0', 0, '') ON DUPLICATE KEY UPDATE log_cmplt_xids = ''",
        [group.upper(), key],
    )


def forget_names(connection: Connection[Any], table: TableName, group: str, key: int) -> None:
    """Remove the names of transactions that were applied above a row that was removed."""
    beside = _sql(transaction_table(table))
    execute(connection, f"DELETE FROM {beside} WHERE {_MINE} AND log_cmplt_xids_seq > 0", [group.upper(), key])


def has_names(connection: Connection[Any], table: TableName, group: str, key: int) -> bool:
    """Whether the marker row of ``names_begin`` exists. Without it, rows of the transaction table were lost."""
    beside = _sql(transaction_table(table))
    text = f"SELECT 1 FROM {beside} WHERE {_MINE} AND log_cmplt_xids_seq = 0"
    return bool(execute(connection, text, [group.upper(), key]))


def begun_ddl(connection: Connection[Any], table: TableName, group: str, key: int) -> str:
    """The text of ``begin_ddl`` for the last DDL statement that a group has begun; empty if there is none."""
    beside = _sql(transaction_table(table))
    text = f"SELECT log_cmplt_xids FROM {beside} WHERE {_MINE} AND log_cmplt_xids_seq = {_DDL}"
    found = execute(connection, text, [group.upper(), key])
    return str(found[0][0]) if found else ""


def begin_ddl(connection: Connection[Any], table: TableName, group: str, key: int, statement: str) -> None:
    """Note that a DDL statement begins. The server commits it at once, so the group's row cannot say that it was executed."""
    execute(
        connection,
        f"INSERT INTO {_sql(transaction_table(table))} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq,"
        f" log_cmplt_xids) VALUES (%s, %s, '0', {_DDL}, %s) ON DUPLICATE KEY UPDATE log_cmplt_xids = VALUES(log_cmplt_xids)",
        [group.upper(), key, statement],
    )


def insert(connection: Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> bool:
    """Insert a group's first row. Return False if the group already has a row, which stays unchanged."""
    if read(connection, table, group, key) is not None:
        return False
    execute(
        connection,
        f"INSERT INTO {_sql(table)} (group_name, group_key, {_COLUMNS}, create_ts, last_update_ts, current_dir,"
        f" version) VALUES (%s, %s, {_MARKS}, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), %s, %s)",
        [group.upper(), key, *to_columns(row), home[:255], VERSION],
    )
    return True


def move(connection: Connection[Any], table: TableName, group: str, key: int, position: TrailPosition) -> None:
    """Set a group's position in its trail. What it records about applied transactions stays."""
    text = f"UPDATE {_sql(table)} SET seqno = %s, rba = %s WHERE {_MINE}"
    execute(connection, text, [position.seqno, position.rba, group.upper(), key])


def replace(connection: Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> None:
    """Replace a group's row, whatever its content (ALTER REPLICAT), within the caller's transaction."""
    require(connection, table)
    _remove(connection, table, group, key)
    insert(connection, table, group, key, row, home)


def update_text(table: TableName, row: CheckpointRow, group: str, key: int) -> bytes:
    """The UPDATE of a group's row; the caller checks that it has found the row."""
    sets = ",".join(f"{name}={_literal(value)}" for name, value in zip(Columns._fields, to_columns(row), strict=True))
    where = f"group_name={text_literal(group.upper())} AND group_key={key}"
    return f"UPDATE {quote_table(table)} SET {sets},last_update_ts=UTC_TIMESTAMP(6) WHERE {where}".encode()


def names_text(table: TableName, group: str, key: int, csn: str, sequence: int, ids: str) -> bytes:
    """The INSERT of a row with ids of applied transactions."""
    values = f"{text_literal(group.upper())},{key},{text_literal(csn)},{sequence},{text_literal(ids)}"
    columns = "group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids"
    return f"INSERT INTO {quote_table(transaction_table(table))} ({columns}) VALUES ({values})".encode()


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else text_literal(value)
