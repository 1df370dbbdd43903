"""PostgreSQL as a target: COPY for runs of inserts, pipelined prepared statements for everything else.

Commits are asynchronous (``synchronous_commit = off``): rows and checkpoint row are one transaction, so what a crash of
the server takes is applied again; ``durable`` waits before anybody relies on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from ggshell.apply.target import CheckpointRow, TableMapping, TargetColumn, TargetTable
from ggshell.databases.postgres import checkpoint_sql, describe, session
from ggshell.databases.postgres.copy_rows import copy_text, copy_text_slowly
from ggshell.databases.postgres.pipeline import Pipeline
from ggshell.databases.postgres.statements import StatementBuilder
from ggshell.errors import ConnectionLostError, RowError
from ggshell.record import ChangeBatch, IoType
from ggshell.types import TableName, TrailPosition

COPY_ROWS = 16
"""From this many inserts in a row on, COPY costs less than statements."""

_NO_EQUALITY = frozenset({"json", "xml", "point", "box", "polygon", "path", "line", "lseg", "circle"})
_TRANSIENT = ("40001", "40P01", "55P03")


@contextlib.contextmanager
def _passing() -> Iterator[None]:
    """Deadlocks, shutdowns and the like pass: they are no fault of the row, and trying again helps."""
    try:
        yield
    except RowError as error:
        if error.state.startswith(("57P", "08", "53")) or error.state in _TRANSIENT:
            raise ConnectionLostError(f"the target broke off: {error}") from error
        raise


class PostgresTarget:
    """A connection that applies one group's rows."""

    def __init__(self, conninfo: str, group: str, home: str, table: TableName, begin: TrailPosition) -> None:
        self._connection = session.connect(conninfo, program=f"ggshell replicat {group.upper()}")
        self._pipeline = Pipeline(self._connection.pgconn)
        self._group = group
        self._key = checkpoint_sql.group_key(group, home)
        self._table = table
        self._update = checkpoint_sql.UPDATE.format(table=describe.quote_table(table))
        self._builders: dict[int, tuple[TableMapping, StatementBuilder]] = {}
        self._begun = False
        self._changed = False
        session.execute(self._connection, "SET synchronous_commit = off")
        checkpoint_sql.require(self._connection, table)
        if self.checkpoint() is None:
            first = CheckpointRow(begin, None)
            checkpoint_sql.insert(self._connection, table, group, self._key, first, home)

    @property
    def key(self) -> int:
        """The group's key in the checkpoint table."""
        return self._key

    def describe(self, table: TableName) -> TargetTable | None:
        self._settle()
        relation = describe.table_id(self._connection, table)
        if relation is None:
            return None
        rows = describe.columns(self._connection, relation)
        columns = tuple(
            TargetColumn(name, kind, writable=not generated, comparable=kind.split("(")[0] not in _NO_EQUALITY)
            for name, kind, _, _, _, _, generated in rows
        )
        return TargetTable(table, columns, tuple(row[0] for row in rows if row[4]))

    def checkpoint(self) -> CheckpointRow | None:
        return checkpoint_sql.read(self._connection, self._table, self._group, self._key)

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> None:
        self._begin()
        with _passing():
            self._apply(batch, first, last, mappings)

    def _apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> None:
        codes = batch.table[first:last].astype(np.int64) << 8 | batch.io_type[first:last]
        edges = [first, *(np.flatnonzero(np.diff(codes)) + first + 1).tolist(), last]
        truncated: list[str] = []
        for number, low in enumerate(edges[:-1]):
            mapping = mappings.get(int(batch.table[low]))
            if mapping is None:
                continue
            high = edges[number + 1]
            if batch.io_type[low] == IoType.PURGE_DATA:
                truncated.append(describe.quote_table(mapping.target.name))
                following = high < last and batch.io_type[high] == IoType.PURGE_DATA
                if not following:
                    self._pipeline.send(f"TRUNCATE {', '.join(dict.fromkeys(truncated))}", [], row=low)
                    truncated = []
            elif (
                batch.io_type[low] != IoType.INSERT
                or high - low < COPY_ROWS
                or not self._copy(batch, low, high, mapping)
            ):
                self._statements(batch, low, high, mapping)

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> None:
        self._begin()
        if batch.io_type[row] == IoType.PURGE_DATA:
            self._pipeline.send(f"TRUNCATE {describe.quote_table(mapping.target.name)}", [], row=row)
        else:
            self._statements(batch, row, row + 1, mapping)
        self._finish()

    def commit(self, row: CheckpointRow) -> None:
        """One round trip; two where the number of changed rows must be known before."""
        self._begin()
        self._pipeline.send(self._update, checkpoint_sql.update_values(row, self._group, self._key), affects=1)
        if self._changed:
            self._finish()
        self._pipeline.simple(b"COMMIT")
        self._finish()
        self._begun = self._changed = False

    def rollback(self) -> None:
        if not self._begun:
            return
        self._begun = self._changed = False
        self._settle()
        self._pipeline.simple(b"ROLLBACK")
        self._finish()

    def durable(self) -> None:
        self._settle()
        session.execute(self._connection, "SET synchronous_commit = on")
        session.execute(
            self._connection,
            f"UPDATE {describe.quote_table(self._table)} SET last_update_ts = localtimestamp"
            " WHERE group_name = %s AND group_key = %s",
            [self._group.upper(), self._key],
        )
        session.execute(self._connection, "SET synchronous_commit = off")

    def close(self) -> None:
        self._connection.close()

    def _begin(self) -> None:
        if not self._begun:
            self._pipeline.simple(b"BEGIN")
            self._begun = True

    def _finish(self) -> None:
        with _passing():
            self._pipeline.finish()

    def _settle(self) -> None:
        """Leave pipeline mode, for statements through psycopg."""
        try:
            self._finish()
        except RowError:
            if self._begun:
                raise
        self._pipeline.leave()

    def _builder(self, mapping: TableMapping) -> StatementBuilder:
        known = self._builders.get(id(mapping))
        if known is None:
            known = self._builders[id(mapping)] = (mapping, StatementBuilder(mapping))
        return known[1]

    def _statements(self, batch: ChangeBatch, first: int, last: int, mapping: TableMapping) -> None:
        builder, view, send = self._builder(mapping), memoryview(batch.buffer), self._pipeline.send
        starts, lengths = batch.start[first:last].tolist(), batch.length[first:last].tolist()
        io_type = int(batch.io_type[first])
        self._changed = self._changed or io_type != IoType.INSERT
        for row, start, length in zip(range(first, last), starts, lengths, strict=True):
            operation = builder.operation(io_type, view[start : start + length])
            if operation is not None:
                send(operation.statement, operation.values, row=row, affects=operation.affects)

    def _copy(self, batch: ChangeBatch, first: int, last: int, mapping: TableMapping) -> bool:
        """Insert a run by COPY; False when its rows do not all have the same columns."""
        chosen = [index for index, column in enumerate(mapping.columns) if column is not None]
        start, length = batch.start[first:last], batch.length[first:last]
        text = (
            copy_text(batch.buffer, start, length, len(mapping.columns))
            if len(chosen) == len(mapping.columns)
            else None
        )
        if text is None:
            view = memoryview(batch.buffer)
            images = [view[low : low + size] for low, size in zip(start.tolist(), length.tolist(), strict=True)]
            text = copy_text_slowly(images, chosen)
        if text is None:
            return False
        names = ", ".join(describe.quote(column.name) for column in mapping.columns if column is not None)
        statement = f"COPY {describe.quote_table(mapping.target.name)} ({names}) FROM STDIN"
        self._finish()
        self._pipeline.copy(statement.encode(), text, last - first, first)
        return True
