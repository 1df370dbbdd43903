"""Reads whole tables of MariaDB or MySQL as of one consistent snapshot, with the same text for each value as the log.

The snapshot is an InnoDB transaction. MariaDB shows the position in the log that belongs to it; for MySQL, a global read lock
is held for the moment between the snapshot and the position.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ggshell.connectors.connector import DatabaseFacts
from ggshell.connectors.mysql.binlog.cells import Step, assemble
from ggshell.connectors.mysql.catalog import matches, primary_key, user_tables
from ggshell.connectors.mysql.column_text import SourceColumn, raw_values, source_columns
from ggshell.connectors.mysql.log_files import file_number, log_end, value_of
from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.requirements import require_named_type
from ggshell.connectors.mysql.session import connect, execute, quote_name, server_version
from ggshell.connectors.table_source import LoadTable, Wait, loaded_rows, parents_first
from ggshell.errors import DatabaseError, NotFoundError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, CsnForm, TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

BATCH_ROWS: Final = 4000
BATCH_BYTES: Final = 4 << 20


class MysqlTables:
    """A server whose tables are loaded."""

    def __init__(self, login: str) -> None:
        self._login = login

    def facts(self) -> DatabaseFacts:
        address = parse_login(self._login)
        with connect(self._login) as connection:
            return DatabaseFacts(address.database, address.user, server_version(connection).text)

    def snapshot(self, group: str, wait: Wait) -> TableSnapshotOfServer | None:
        return TableSnapshotOfServer(connect(self._login, program=f"ggshell extract {group}"), wait)


class TableSnapshotOfServer:
    """A snapshot. ``csn`` is the last commit that it contains; ``time`` is in microseconds since 1970."""

    def __init__(self, connection: Connection[Any], wait: Wait) -> None:
        self._connection = connection
        self._wait = wait
        try:
            self.csn = Csn(_begin(connection), CsnForm.LOG)
        except BaseException:
            connection.close()
            raise
        ((seconds,),) = execute(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")
        self.time = int(seconds * 1_000_000)
        self._ready = os.eventfd(1)  # always readable: a wait for it only asks whether the work is to end

    def tables(
        self, patterns: Sequence[str], wanted: Callable[[TableName], bool], keys: Callable[[TableName], tuple[str, ...]]
    ) -> list[LoadTable]:
        every = user_tables(self._connection)
        names: dict[TableName, None] = {}
        for pattern in patterns:
            found = [name for name in every if matches(name, pattern)]
            if not found:
                raise NotFoundError(f"no table matches {pattern}", hint="check the name, and whether it needs quotes")
            names.update(dict.fromkeys(found))
        ordered = parents_first(names, self._parents())
        return [self._table(name, keys(name)) for name in ordered if name in names and wanted(name)]

    def left_out(self, patterns: Sequence[str], wanted: Callable[[TableName], bool]) -> list[TableName]:
        return []

    def about(self, table: TableName) -> int:
        rows = execute(
            self._connection,
            "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            list(table),
        )
        return int(rows[0][0] or 0) if rows else 0

    def read(self, number: int, table: LoadTable, predicate: str = "") -> Iterator[ChangeBatch]:
        """Return the rows of a table. If ``wait`` says to end, the batches stop without the end of the transaction."""
        header = TransactionHeader(f"load.{self.csn.value}.{number}", self.csn, self.time, self.csn.value)
        columns = self._columns(table.definition.name)
        held: ChangeBatch | None = None
        for rows in self._rows(table, columns, predicate):
            if held is not None:
                yield held
            held = _batch(table.definition, columns, rows, header, begins=held is None)
            if not self._wait(self._ready):
                return
        if held is not None:
            (piece,) = held.pieces
            yield held.take(slice(None), (TransactionPiece(header, 0, piece.count, piece.begins, True),))

    def close(self) -> None:
        self._connection.close()
        os.close(self._ready)

    def _rows(self, table: LoadTable, columns: list[SourceColumn], predicate: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows as the server sends them, in lists of limited size. Values are bytes, or None for NULL."""
        from pymysql.cursors import SSCursor

        text = _selection(table.definition.name, columns, predicate)
        with raw_values(self._connection), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(text)
            rows: list[tuple[Any, ...]] = []
            size = 0
            for row in cursor.fetchall_unbuffered():
                rows.append(row)
                size += sum(len(value) for value in row if value is not None)
                if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
                    yield rows
                    rows, size = [], 0
            if rows:
                yield rows

    def _parents(self) -> dict[TableName, list[TableName]]:
        """The tables that each table refers to."""
        rows = execute(
            self._connection,
            "SELECT TABLE_SCHEMA, TABLE_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM"
            " information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL",
        )
        found: dict[TableName, list[TableName]] = {}
        for owner, name, parent_owner, parent in rows:
            found.setdefault(TableName(owner, name), []).append(TableName(parent_owner, parent))
        return found

    def _columns(self, table: TableName) -> list[SourceColumn]:
        return source_columns(self._connection, table)

    def _table(self, name: TableName, keycols: tuple[str, ...]) -> LoadTable:
        columns = self._columns(name)
        for column in columns:
            require_named_type(name, column.name, column.kind)
        key = keycols or primary_key(self._connection, name)
        names = [column.name for column in columns]
        definition = TableDefinition(
            name,
            tuple(Column(column.name, column.type, 0, column.nullable) for column in columns),
            tuple(names.index(each) for each in key if each in names),
        )
        return LoadTable(definition)


def _begin(connection: Connection[Any]) -> int:
    """Take a snapshot; return the CSN's value of the last commit in it: the position before the next transaction."""
    version = server_version(connection)
    execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if version.mariadb:
        execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        found = dict(execute(connection, "SHOW STATUS LIKE 'binlog_snapshot_%%'", []))
        named = {str(name).lower(): str(value) for name, value in found.items()}
        file, position = named.get("binlog_snapshot_file", ""), int(named.get("binlog_snapshot_position") or 0)
    else:
        execute(connection, "FLUSH TABLES WITH READ LOCK")
        execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        end = log_end(connection, version)
        file, position = end.file, end.position
        execute(connection, "UNLOCK TABLES")
    if not file:
        raise DatabaseError("the server does not write a binary log", hint="start it with log_bin")
    return value_of(0, file_number(file), position) - 1


def _selection(table: TableName, columns: list[SourceColumn], predicate: str) -> str:
    selected = ", ".join(column.expression for column in columns)
    return f"SELECT {selected} FROM {quote_name(table.owner)}.{quote_name(table.name)} {predicate}"


def _batch(
    definition: TableDefinition,
    columns: list[SourceColumn],
    rows: list[tuple[Any, ...]],
    header: TransactionHeader,
    *,
    begins: bool,
) -> ChangeBatch:
    steps = [_step(index, column, [row[index] for row in rows]) for index, column in enumerate(columns)]
    images = assemble(steps, len(rows))
    return loaded_rows(definition, header, images.buffer, (images.start, images.length), begins=begins)


def _step(index: int, column: SourceColumn, values: list[bytes | None]) -> Step:
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        return Step(index, None, column.cells(known))
    null = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    return Step(index, np.flatnonzero(~null), column.cells(known), np.flatnonzero(null))
