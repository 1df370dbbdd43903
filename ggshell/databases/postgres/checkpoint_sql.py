"""The checkpoint table in PostgreSQL: columns and types as GoldenGate's own (outputs reference, section 5)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from ggshell.apply.target import CheckpointRow
from ggshell.clock import from_datetime, to_datetime
from ggshell.databases.postgres.describe import quote_table, table_id
from ggshell.databases.postgres.session import execute
from ggshell.errors import ConflictError, NotFoundError
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    import psycopg

VERSION = 6

_MAIN = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, seqno integer, rba bigint NOT NULL, audit_ts varchar(29),
  create_ts timestamp NOT NULL, last_update_ts timestamp NOT NULL, current_dir varchar(255) NOT NULL,
  log_bsn varchar(128), log_csn varchar(128), log_xid varchar(128), log_cmplt_csn varchar(128),
  log_cmplt_xids varchar(2000), version integer, PRIMARY KEY (group_name, group_key))"""
_TRANSACTIONS = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, log_cmplt_csn varchar(128) NOT NULL,
  log_cmplt_xids_seq integer NOT NULL, log_cmplt_xids varchar(2000) NOT NULL,
  PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq))"""

UPDATE = """UPDATE {table} SET seqno = $1, rba = $2, audit_ts = $3, last_update_ts = localtimestamp, log_bsn = $4,
  log_csn = $5, log_xid = $6, log_cmplt_csn = $5, log_cmplt_xids = $6 WHERE group_name = $7 AND group_key = $8"""


def transaction_table(table: TableName) -> TableName:
    """The table beside the main one that takes the completed transactions which do not fit its row."""
    return TableName(table.owner, f"{table.name}_lox")


def group_key(group: str, home: str) -> int:
    """A number that tells groups of one name in different homes apart."""
    return zlib.crc32(f"{home}\0{group.upper()}".encode())


def create(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Make both tables, or none.  Raises ConflictError when one exists."""
    for name in (table, transaction_table(table)):
        if table_id(connection, name) is not None:
            raise ConflictError(f"checkpoint table {name} exists already")
    with connection.transaction():
        execute(connection, _MAIN.format(table=quote_table(table)))
        execute(connection, _TRANSACTIONS.format(table=quote_table(transaction_table(table))))


def drop(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Drop both tables.  Raises NotFoundError when the main one does not exist."""
    require(connection, table)
    execute(connection, f"DROP TABLE {quote_table(table)}")
    execute(connection, f"DROP TABLE IF EXISTS {quote_table(transaction_table(table))}")


def require(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Raises NotFoundError unless the checkpoint table exists."""
    if table_id(connection, table) is None:
        raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")


def groups(connection: psycopg.Connection[Any], table: TableName) -> list[tuple[str, int, str, str]]:
    """(group, key, high watermark CSN, last update) of every row."""
    require(connection, table)
    return execute(
        connection,
        "SELECT group_name, group_key, coalesce(log_csn, ''), last_update_ts::timestamp(0)::text"
        f" FROM {quote_table(table)} ORDER BY 1, 2",
    )


def cleanup(connection: psycopg.Connection[Any], table: TableName, group: str) -> int:
    """Remove a group's rows; how many there were."""
    require(connection, table)
    for name in (transaction_table(table), table):
        gone = execute(
            connection, f"DELETE FROM {quote_table(name)} WHERE group_name = %s RETURNING 1", [group.upper()]
        )
    return len(gone)


def read(connection: psycopg.Connection[Any], table: TableName, group: str, key: int) -> CheckpointRow | None:
    """A group's row, None when it has none."""
    rows = execute(
        connection,
        f"SELECT seqno, rba, coalesce(log_csn, ''), coalesce(log_xid, ''), audit_ts, log_bsn FROM {quote_table(table)}"
        " WHERE group_name = %s AND group_key = %s",
        [group.upper(), key],
    )
    if not rows:
        return None
    seqno, rba, csn, xid, audit, bsn = rows[0]
    time = _moment(audit) if audit else 0
    restart = Csn.parse(bsn).value if bsn else 0
    return CheckpointRow(TrailPosition(seqno or 0, rba), Csn.parse(csn) if csn else None, xid, time, restart)


def _moment(text: str) -> int:
    from datetime import UTC, datetime

    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def insert(
    connection: psycopg.Connection[Any], table: TableName, group: str, key: int, row: CheckpointRow, home: str
) -> None:
    """A group's first row."""
    execute(
        connection,
        f"INSERT INTO {quote_table(table)} (group_name, group_key, seqno, rba, create_ts, last_update_ts, current_dir, version)"
        " VALUES (%s, %s, %s, %s, localtimestamp, localtimestamp, %s, %s)",
        [group.upper(), key, row.position.seqno, row.position.rba, home[:255], VERSION],
    )


def update_values(row: CheckpointRow, group: str, key: int) -> list[bytes | None]:
    """The parameters of ``UPDATE``, as text."""
    csn = str(row.csn).encode() if row.csn is not None else None
    bsn = str(row.csn._replace(value=row.restart)).encode() if row.csn is not None and row.restart else None
    audit = to_datetime(row.commit_time).replace(tzinfo=None).isoformat(" ", "microseconds").encode()
    position = row.position
    numbers = [b"%d" % position.seqno, b"%d" % position.rba]
    return [*numbers, audit, bsn, csn, row.xid.encode()[:128], group.upper().encode(), b"%d" % key]
