"""Whole tables as they stood at one commit: what an initial load reads.

A temporary slot tells the place in the log and exports the snapshot that belongs to it: every transaction whose CSN is not
above the place is in the snapshot whole, and none above it at all.  Asking for the log's end beside a snapshot would not be
exact: a commit is in the log a moment before others see it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ggshell.databases.postgres import describe, session
from ggshell.databases.postgres.copy_images import images_of_copy
from ggshell.databases.postgres.session import execute
from ggshell.errors import ConnectionLostError, GgsError, NotFoundError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, TableName, parse_lsn

BATCH_BYTES = 1 << 20
BATCH_ROWS = 10_000
_TUPLES, _COPY_OUT = 2, 3
_FACTS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, extract(epoch FROM transaction_timestamp()) * 1000000"
_REFERENCES = """
SELECT n.nspname, c.relname, pn.nspname, p.relname
  FROM pg_constraint f
  JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
 WHERE f.contype = 'f' AND f.conrelid <> f.confrelid ORDER BY 1, 2, 3, 4"""

Wait = Callable[[int], bool]
"""Wait until a descriptor can be read; False when the work is to end instead."""


class LoadTable(NamedTuple):
    """A table to be read: its definition, and whether it is a partitioned one (whose rows lie in others)."""

    definition: TableDefinition
    partitioned: bool = False


class TableCopy:
    """A snapshot, and the tables in it.  ``csn``: the last commit that it holds, as the log counts; ``time``: when it was
    taken, by the database's clock (microseconds since 1970)."""

    def __init__(self, connection: Any, csn: Csn, wait: Wait) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._wait = wait
        self._ended_early = False
        self.csn = csn
        row = execute(connection, _FACTS)[0]
        self._xid, self.time = str(row[0]), int(row[1])

    @classmethod
    def open(cls, conninfo: str, group: str, wait: Wait) -> TableCopy | None:
        """Take a snapshot, which waits for the transactions that write at this moment; None when ``wait`` says to end.

        Raises DatabaseError when wal_level, a privilege or a free slot is missing, ConnectionLostError.
        """
        program = f"ggshell extract {group}"
        exporter = session.connect(conninfo, replication=True, program=program)
        try:
            name = f"ggs_load_{group.lower()}_{os.getpid()}"
            command = f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
            found = _ask(exporter.pgconn, command, wait)
            if found is None:
                return None
            lsn, snapshot = found.get_value(0, 1).decode(), found.get_value(0, 2).decode()
            connection = session.connect(conninfo, program=program)
            try:
                execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                execute(connection, f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                return cls(connection, Csn(parse_lsn(lsn)), wait)
            except BaseException:
                connection.close()
                raise
        finally:
            exporter.close()  # its slot goes with it: the transaction alone holds the snapshot now

    def tables(
        self, patterns: Sequence[str], wanted: Callable[[TableName], bool], keys: Callable[[TableName], tuple[str, ...]]
    ) -> list[LoadTable]:
        """The wanted tables of some patterns, each once, and a table that others refer to before these (where they do not refer
        to each other).  Raises NotFoundError for a pattern that names none."""
        names: dict[TableName, None] = {}
        for pattern in patterns:
            names.update(dict.fromkeys(describe.resolve(self._connection, pattern)))
        ordered: dict[TableName, None] = {}
        parents = self._parents()
        for name in names:
            _put_behind_parents(name, parents, ordered, set())
        return [self._table(name, keys(name)) for name in ordered if name in names and wanted(name)]

    def _parents(self) -> dict[TableName, list[TableName]]:
        """Which tables a table refers to."""
        found: dict[TableName, list[TableName]] = {}
        for child_owner, child, owner, name in execute(self._connection, _REFERENCES):
            found.setdefault(TableName(child_owner, child), []).append(TableName(owner, name))
        return found

    def _table(self, name: TableName, keycols: tuple[str, ...]) -> LoadTable:
        relation = describe.table_id(self._connection, name)
        if relation is None:
            raise NotFoundError(f"table {name} does not exist", code="GGS-00211")
        found = [
            row for row in describe.columns(self._connection, relation) if not row[6]
        ]  # the log has no generated ones
        key = tuple(index for index, row in enumerate(found) if (row[0] in keycols if keycols else row[4]))
        columns = tuple(Column(row[0], row[1], row[2], row[3]) for row in found)
        kind = execute(self._connection, "SELECT relkind::text FROM pg_class WHERE oid = %s", [relation])[0][0]
        return LoadTable(TableDefinition(name, columns, key), kind == "p")

    def about(self, table: TableName) -> int:
        """About how many rows a table has, as the server's statistics say; 0 when it has none yet."""
        rows = execute(
            self._connection,
            "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_partition_tree(%s) t"
            " JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf",
            [describe.table_id(self._connection, table)],
        )
        return int(rows[0][0])

    def read(self, number: int, table: LoadTable, predicate: str = "") -> Iterator[ChangeBatch]:
        """The rows of a table as the inserts of one transaction, in batches; ends early when ``wait`` says so, without the
        transaction's end.  ``number`` tells its transaction from the others of this CSN; ``predicate``: ``WHERE …``.

        Raises DatabaseError, ConnectionLostError.
        """
        definition = table.definition
        header = TransactionHeader(f"{self._xid}.{number}", self.csn, self.time, self.csn.value)
        held: ChangeBatch | None = None
        for text, rows in self._lines(table, predicate):
            batch = _batch(definition, header, text, rows, begins=held is None)
            if held is not None:
                yield held
            held = batch
        if held is not None and not self._ended_early:
            yield _ended(held)

    def close(self) -> None:
        """Let the snapshot go."""
        self._connection.close()

    def _lines(self, table: LoadTable, predicate: str) -> Iterator[tuple[bytes, int]]:
        """COPY's text in blocks of whole lines, and how many."""
        self._ended_early = False
        pgconn, get = self._pgconn, self._pgconn.get_copy_data
        result = _ask(pgconn, _copy_command(table, predicate), self._wait)
        if result is None:
            self._ended_early = True
            return
        parts: list[bytes] = []
        size = 0
        while True:
            count, data = get(1)
            if count > 0:
                parts.append(bytes(data))
                size += count
                if size >= BATCH_BYTES or len(parts) >= BATCH_ROWS:
                    yield b"".join(parts), len(parts)
                    parts, size = [], 0
                continue
            if count < 0:
                break
            if not self._wait(pgconn.socket):
                self._ended_early = True
                return
            _consume(pgconn)
        if parts:
            yield b"".join(parts), len(parts)
        while (last := pgconn.get_result()) is not None:
            _check(last)


def _put_behind_parents(
    name: TableName,
    parents: Mapping[TableName, Sequence[TableName]],
    ordered: dict[TableName, None],
    on_way: set[TableName],
) -> None:
    """Put a table behind those that it refers to; of tables that refer to each other the first one found comes last."""
    if name in ordered or name in on_way:
        return
    on_way.add(name)
    for parent in parents.get(name, ()):
        _put_behind_parents(parent, parents, ordered, on_way)
    ordered[name] = None


def _copy_command(table: LoadTable, predicate: str) -> str:
    name = describe.quote_table(table.definition.name)
    columns = ", ".join(describe.quote(column.name) for column in table.definition.columns)
    only = "" if table.partitioned else "ONLY "
    return f"COPY (SELECT {columns} FROM {only}{name} {predicate}) TO STDOUT"


def _batch(
    definition: TableDefinition, header: TransactionHeader, text: bytes, rows: int, *, begins: bool
) -> ChangeBatch:
    found = images_of_copy(text, len(definition.columns))
    return ChangeBatch(
        tables=(definition,),
        table=np.zeros(rows, dtype=np.uint16),
        io_type=np.full(rows, int(IoType.INSERT), dtype=np.uint8),
        position=np.full(rows, header.csn.value, dtype=np.uint64),
        buffer=found.buffer.tobytes(),
        start=found.start,
        length=found.length,
        rba=np.zeros(rows, dtype=np.int64),
        pieces=(TransactionPiece(header, 0, rows, begins, False),),
    )


def _ended(batch: ChangeBatch) -> ChangeBatch:
    (piece,) = batch.pieces
    return batch.take(slice(None), (TransactionPiece(piece.header, 0, piece.count, piece.begins, True),))


def _ask(pgconn: Any, command: str, wait: Wait) -> Any:
    """Send a statement and wait for its first result; None when the wait is over before."""
    import psycopg

    try:
        pgconn.send_query(command.encode())
        pgconn.flush()
    except psycopg.Error as error:
        raise _lost(error) from error
    while pgconn.is_busy():
        if not wait(pgconn.socket):
            return None
        _consume(pgconn)
    result = pgconn.get_result()
    _check(result)
    return result


def _consume(pgconn: Any) -> None:
    import psycopg

    try:
        pgconn.consume_input()
    except psycopg.Error as error:
        raise _lost(error) from error


def _check(result: Any) -> None:
    """Raises what the server refused."""
    if result is None:
        raise ConnectionLostError("the source does not answer")
    if result.status in (1, _TUPLES, _COPY_OUT):
        return
    state = (result.error_field(ord("C")) or b"").decode()
    raise session.refusal(result.error_message.decode(errors="replace"), state, operational=not state)


def _lost(error: Exception) -> GgsError:
    return ConnectionLostError(f"the source's connection broke: {' '.join(str(error).split())}")
