"""Whole tables as of one commit, for an initial load.

A temporary slot returns a position in the log and exports the matching snapshot: every transaction with a CSN up to
that position is completely in the snapshot, and none with a higher CSN is. Querying the end of the log separately would
not be exact, because a commit is in the log a moment before other sessions see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.connector import DatabaseFacts
from ggshell.connectors.postgres import describe, session
from ggshell.connectors.postgres.held_snapshot import HeldSnapshot, ask, check, consume
from ggshell.connectors.postgres.session import execute
from ggshell.connectors.postgres.vectors import Bytes, ColumnStep, Encoded, Ints, encode_steps
from ggshell.connectors.table_source import LoadTable, Wait, loaded_rows, parents_first
from ggshell.errors import NO_TABLE, DatabaseError, NotFoundError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import LONGEST_SHORT, encode_image
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import TableName, quote, quote_table

BATCH_BYTES = 1 << 20
BATCH_ROWS = 10_000
SAMPLE_PAGES = 200
"""How many pages of a table are read to estimate its number of rows."""
_LEAVES = """
SELECT n.nspname, c.relname, c.reltuples, pg_relation_size(c.oid) / current_setting('block_size')::int
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND (c.oid = %(table)s OR c.oid IN (SELECT relid FROM pg_partition_tree(%(table)s) WHERE isleaf))"""
_FACTS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, extract(epoch FROM transaction_timestamp()) * 1000000"
_CHANGED = """
WITH RECURSIVE former (oid) AS (
  SELECT %(table)s::oid UNION
  SELECT c.oid FROM former JOIN pg_inherits i ON i.inhparent = former.oid JOIN pg_class c ON c.oid = i.inhrelid
   WHERE c.relispartition),
present (oid) AS (SELECT %(table)s::oid UNION SELECT relid FROM pg_partition_tree(%(table)s::oid))
SELECT EXISTS (
  SELECT FROM former FULL JOIN present USING (oid) LEFT JOIN pg_class c USING (oid)
   WHERE former.oid IS NULL OR present.oid IS NULL
      OR c.relkind = 'r' AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid))"""
"""Whether a table has other partitions or files now than in the snapshot. Only the functions do not use the snapshot."""
_REFERENCES = """
SELECT n.nspname, c.relname, pn.nspname, p.relname
  FROM pg_constraint f
  JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
 WHERE f.contype = 'f' AND f.conrelid <> f.confrelid ORDER BY 1, 2, 3, 4"""


class PostgresTables:
    """A database whose tables are loaded."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def facts(self) -> DatabaseFacts:
        with session.connect(self._conninfo) as connection:
            return DatabaseFacts(*session.database_facts(connection))

    def snapshot(self, group: str, wait: Wait) -> TableCopy | None:
        return TableCopy.open(self._conninfo, group, wait)


class TableCopy:
    """A snapshot, and the tables in it.

    ``csn`` is the last commit that the snapshot contains, and ``time`` is when it was taken, by the database's clock
    (microseconds since 1970).
    """

    def __init__(self, snapshot: HeldSnapshot, wait: Wait) -> None:
        self._snapshot = snapshot
        self._connection = snapshot.connection
        self._pgconn = self._connection.pgconn
        self._wait = wait
        self._ended_early = False
        self.csn = snapshot.csn
        row = execute(self._connection, _FACTS)[0]
        self._xid, self.time = str(row[0]), int(row[1])

    @classmethod
    def open(cls, conninfo: str, group: str, wait: Wait) -> TableCopy | None:
        """Take a snapshot; None when ``wait`` says to end. Raises what ``HeldSnapshot.take`` raises."""
        snapshot = HeldSnapshot.take(conninfo, group, wait)
        return None if snapshot is None else cls(snapshot, wait)

    def tables(
        self, patterns: Sequence[str], wanted: Callable[[TableName], bool], keys: Callable[[TableName], tuple[str, ...]]
    ) -> list[LoadTable]:
        """The wanted tables of some patterns, each once, with referenced tables before those that refer to them.

        The order is arbitrary among tables that refer to each other. Raises NotFoundError for a pattern that matches no
        table, and DatabaseError for a table whose rows are not all visible.
        """
        names: dict[TableName, None] = {}
        for pattern in patterns:
            found = describe.matching(self._connection, pattern)
            if not found and not describe.unlogged(self._connection, pattern):
                describe.resolve(self._connection, pattern)  # raises NotFoundError
            names.update(dict.fromkeys(found))
        ordered = [each for each in parents_first(names, self._parents()) if each in names and wanted(each)]
        self._lock(ordered)
        return [self._table(name, keys(name)) for name in ordered]

    def _lock(self, tables: Sequence[TableName]) -> None:
        """Lock tables until the snapshot is released.

        The rows of a table that is rewritten (ALTER TABLE … TYPE) are not visible in an earlier snapshot. Raises
        DatabaseError if that has happened since this one.
        """
        if tables:
            names = ", ".join(map(quote_table, tables))
            execute(self._connection, f"LOCK TABLE {names} IN ACCESS SHARE MODE")
        for table in tables:
            values = {"table": describe.table_id(self._connection, table)}
            if execute(self._connection, _CHANGED, values)[0][0]:
                raise DatabaseError(
                    f"table {table} was rewritten, or its partitions changed, after the snapshot was taken",
                    hint="START the group again when the DDL has ended",
                )

    def left_out(self, patterns: Sequence[str], wanted: Callable[[TableName], bool]) -> list[TableName]:
        """The UNLOGGED tables that patterns match. Later changes of them are not in the log."""
        names = {name for pattern in patterns for name in describe.unlogged(self._connection, pattern)}
        return [name for name in sorted(names) if wanted(name)]

    def _parents(self) -> dict[TableName, list[TableName]]:
        """The tables that each table refers to."""
        found: dict[TableName, list[TableName]] = {}
        for child_owner, child, owner, name in execute(self._connection, _REFERENCES):
            found.setdefault(TableName(child_owner, child), []).append(TableName(owner, name))
        return found

    def _table(self, name: TableName, keycols: tuple[str, ...]) -> LoadTable:
        relation = describe.table_id(self._connection, name)
        if relation is None:
            raise NotFoundError(f"table {name} does not exist", code=NO_TABLE)
        describe.require_all_rows(self._connection, name)
        found = [
            each for each in describe.columns(self._connection, relation) if not each.generated
        ]  # the log does not contain generated columns
        key = tuple(index for index, each in enumerate(found) if (each.name in keycols if keycols else each.in_key))
        columns = tuple(each.recorded for each in found)
        kind = execute(self._connection, "SELECT relkind::text FROM pg_class WHERE oid = %s", [relation])[0][0]
        return LoadTable(TableDefinition(name, columns, key), kind == "p")

    def about(self, table: TableName) -> int:
        """The approximate number of rows of a table.

        It comes from the server's statistics, or from a sample of a table that was not analyzed since it has rows.
        """
        leaves = execute(self._connection, _LEAVES, {"table": describe.table_id(self._connection, table)})
        return sum(
            int(rows) if rows > 0 else self._sampled(TableName(owner, name), int(pages))
            for owner, name, rows, pages in leaves
        )

    def _sampled(self, table: TableName, pages: int) -> int:
        """The approximate number of rows, from the rows of some pages."""
        if not pages:
            return 0
        sample = f"TABLESAMPLE SYSTEM ({min(100.0, SAMPLE_PAGES * 100 / pages):.6f})"
        found = f"SELECT count(*), count(DISTINCT (ctid::text::point)[0]) FROM ONLY {quote_table(table)}"
        rows, seen = execute(self._connection, f"{found} {sample}")[0]
        return int(rows) if pages <= SAMPLE_PAGES else int(rows) * pages // max(1, int(seen))

    def read(self, number: int, table: LoadTable, predicate: str = "") -> Iterator[ChangeBatch]:
        """The rows of a table as the inserts of one transaction, in batches.

        If ``wait`` says to end, the batches stop without the end of the transaction. ``number`` distinguishes this
        transaction from others with the same CSN. ``predicate`` is a ``WHERE …`` clause. Raises DatabaseError,
        ConnectionLostError.
        """
        definition = table.definition
        header = TransactionHeader(f"{self._xid}.{number}", self.csn, self.time, self.csn.value)
        held: ChangeBatch | None = None
        for text, _ in self._lines(table, predicate):
            batch = _batch(definition, header, text, begins=held is None)
            if held is not None:
                yield held
            held = batch
        if held is not None and not self._ended_early:
            yield _ended(held)

    def close(self) -> None:
        """Release the snapshot."""
        self._snapshot.close()

    def _lines(self, table: LoadTable, predicate: str) -> Iterator[tuple[bytes, int]]:
        """COPY's text in blocks of whole lines, each with its number of lines."""
        self._ended_early = False
        pgconn, get = self._pgconn, self._pgconn.get_copy_data
        result = ask(pgconn, _copy_command(table, predicate), self._wait)
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
            consume(pgconn)
        if parts:
            yield b"".join(parts), len(parts)
        while (last := pgconn.get_result()) is not None:
            check(last)


def _copy_command(table: LoadTable, predicate: str) -> str:
    name = quote_table(table.definition.name)
    columns = ", ".join(quote(column.name) for column in table.definition.columns)
    only = "" if table.partitioned else "ONLY "
    return f"COPY (SELECT {columns} FROM {only}{name} {predicate}) TO STDOUT"


def _batch(definition: TableDefinition, header: TransactionHeader, text: bytes, *, begins: bool) -> ChangeBatch:
    found = images_of_copy(text, len(definition.columns))
    return loaded_rows(definition, header, found.buffer, (found.start, found.length), begins=begins)


def _ended(batch: ChangeBatch) -> ChangeBatch:
    (piece,) = batch.pieces
    return batch.take(slice(None), (TransactionPiece(piece.header, 0, piece.count, piece.begins, True),))


# Data areas from COPY's text, thousands of rows at once, so that loaded rows look like inserts in the log.
#
# The reverse of ``copy_rows.py``. COPY's text, like pgoutput's, comes from the output functions of the types, so a
# row that was loaded and the same row from the log have the same bytes.


_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
_MEANT = np.arange(256, dtype=np.uint8)
_MEANT[np.frombuffer(b"bfnrtv", dtype=np.uint8)] = np.frombuffer(b"\b\f\n\r\t\v", dtype=np.uint8)


def images_of_copy(text: bytes, columns: int) -> Encoded:
    """The images of whole lines with ``columns`` values each (at least one)."""
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((raw == _TAB) | (raw == _NEWLINE))
    places = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1] + 1))
    null = _nulls(raw, places, ends)
    if (raw == _BACKSLASH).any():
        raw, places, ends = _unescaped(raw, places, ends, null)
    sizes = np.where(null, -1, ends - places)
    place, size = places.reshape(-1, columns), sizes.reshape(-1, columns)
    rows = np.arange(len(place), dtype=np.int64)
    steps = [ColumnStep(index, rows, place[:, index], size[:, index]) for index in range(columns)]
    long_rows = np.flatnonzero((size > LONGEST_SHORT).any(axis=1))
    encoded = encode_steps(raw, steps, long_rows, len(rows))
    return _with_long(encoded, raw, place, size, long_rows) if len(long_rows) else encoded


def _nulls(raw: Bytes, places: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Which values are ``\\N``. No value's text can be that, because its backslash would be doubled."""
    found: NDArray[np.bool_] = ends - places == 2
    where = np.flatnonzero(found)
    found[where] = (raw[places[where]] == _BACKSLASH) & (raw[places[where] + 1] == _N)
    return found


def _unescaped(raw: Bytes, places: Ints, ends: Ints, null: NDArray[np.bool_]) -> tuple[Bytes, Ints, Ints]:
    """Remove the escapes. In a run of backslashes, every second one escapes the byte after it."""
    slash = raw == _BACKSLASH
    slash[places[null]] = False
    place = np.arange(len(raw), dtype=np.int64)
    before = np.maximum.accumulate(np.where(slash, -1, place))  # the last byte that is not a backslash
    leads = slash & ((place - before) % 2 == 1)
    behind = np.flatnonzero(leads) + 1
    meant = raw.copy()
    meant[behind] = _MEANT[raw[behind]]
    gone = np.cumsum(leads)
    return meant[~leads], places - np.where(places > 0, gone[places - 1], 0), ends - gone[ends]


def _with_long(encoded: Encoded, raw: Bytes, place: Ints, size: Ints, long_rows: Ints) -> Encoded:
    """Append rows with a very long value, encoded one by one."""
    buffer, start, length = [encoded.buffer.tobytes()], encoded.start.copy(), encoded.length.copy()
    end = len(encoded.buffer)
    for row in long_rows.tolist():
        pairs = zip(place[row].tolist(), size[row].tolist(), strict=True)
        image = encode_image(
            (index, None if count < 0 else raw[first : first + count].tobytes())
            for index, (first, count) in enumerate(pairs)
        )
        start[row], length[row] = end, len(image)
        buffer.append(image)
        end += len(image)
    return Encoded(np.frombuffer(b"".join(buffer), dtype=np.uint8), start, length)
