"""Encodes the rows of committed transactions as a ChangeBatch. SQL text is parsed here and nowhere earlier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ggshell.connectors.oracle_redo.definitions import Definitions, RedoTable
from ggshell.connectors.oracle_redo.literals import UNSUPPORTED, Value
from ggshell.connectors.oracle_redo.lobs import NOTHING, Assigned, LobPieces
from ggshell.connectors.oracle_redo.messages import CachedRow, unpack_row
from ggshell.connectors.oracle_redo.rows import LOB_PIECES, Operation
from ggshell.connectors.oracle_redo.sql import (
    ROWID,
    Pairs,
    RedoStatement,
    insert_head,
    insert_values,
    parse_delete,
    parse_insert,
    parse_update,
)
from ggshell.errors import CaptureError
from ggshell.pipeline.capture.source import MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece

Problem = Callable[[str, str, str, str], None]
"""Reports what cannot be captured: owner, table, reason, and details that are reported for the first one only."""
UNREADABLE = "GGS-00521"
WAYS = (
    "export the segment again so that the row can be read, or set TRANLOGOPTIONS UNREADABLEREDO REPORT: START then skips this"
    " row and reports it. Do not skip it with ALTER EXTRACT, SCN: transactions open at that SCN would be lost"
)
AFTERWARDS = (
    "use COMPARE to find the differences, and an initial load of the table to correct them;"
    " with TRANLOGOPTIONS UNREADABLEREDO ABEND, Extract would stop here"
)
Encoded = tuple[TableDefinition, int, bytes]


class _Batch:
    """Collects the rows of a batch."""

    def __init__(self) -> None:
        self.tables: dict[TableDefinition, int] = {}
        self.numbers: list[int] = []
        self.io_types: list[int] = []
        self.places: list[int] = []
        self.images: list[bytes] = []
        self.owners: list[tuple[MessageRun, int]] = []

    def add(self, row: CachedRow, found: Encoded) -> None:
        definition, io_type, image = found
        self.numbers.append(self.tables.setdefault(definition, len(self.tables)))
        self.io_types.append(io_type)
        self.places.append(row.place)
        self.images.append(image)

    def take_last(self) -> None:
        """Remove the last row."""
        for column in (self.numbers, self.io_types, self.places):
            column.pop()
        self.images.pop()

    def built(self) -> ChangeBatch:
        length = np.array([len(image) for image in self.images], dtype=np.int64)
        return ChangeBatch(
            tables=tuple(self.tables),
            table=np.array(self.numbers, dtype=np.uint16),
            io_type=np.array(self.io_types, dtype=np.uint8),
            position=np.array(self.places, dtype=np.uint64),
            buffer=b"".join(self.images),
            start=np.cumsum(length) - length,
            length=length,
            rba=np.zeros(len(length), dtype=np.int64),
            pieces=_pieces(self.owners),
        )


class _Held(NamedTuple):
    """A row that LOB pieces may follow (None: they follow no row), and the pieces that did."""

    row: CachedRow | None
    pieces: list[CachedRow]


class Encoder:
    """Builds batches. A row is held back while LOB pieces of it may follow.

    ``problem`` is called for each row or value that cannot be captured; the rest is captured. With ``abends``, a row
    whose SQL cannot be read ends capture instead.
    """

    def __init__(self, definitions: Definitions, problem: Problem, *, abends: bool = False) -> None:
        self._definitions = definitions
        self._report = problem
        self._abends = abends
        self._known: dict[tuple[str, str, tuple[bytes, ...]], tuple[RedoTable, tuple[int, ...]]] = {}
        self._version = -1
        self._problems: list[tuple[str, str, str, str]] = []
        self._header: TransactionHeader | None = None
        self._held: _Held | None = None

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        """Encode the rows of some runs as one batch. None when there are none.

        Raises CaptureError for a row that must end capture. Nothing is then reported for these runs.
        """
        batch = _Batch()
        self._problems.clear()
        for run in runs:
            self._encode_run(run, batch)
        for problem in self._problems:
            self._report(*problem)
        return batch.built() if batch.images else None

    def _encode_run(self, run: MessageRun, batch: _Batch) -> None:
        first = len(batch.images)
        if run.header is not self._header:
            self._header, self._held = run.header, None
        last: CachedRow | None = None
        add, encode = batch.add, self._row
        for part in run.parts:
            for message in part:
                row = unpack_row(message)
                if row.operation in LOB_PIECES:
                    self._hold(last, batch)
                    last = None
                    if self._held is not None:
                        self._held.pieces.append(row)
                    continue
                if self._held is not None:
                    self._add_held(batch)
                found = encode(row)
                last = None
                if found is not None:
                    add(row, found)
                    last = row
        if run.ends:
            self._add_held(batch)
        elif last is not None:
            self._hold(last, batch)
        batch.owners.append((run, len(batch.images) - first))

    def _hold(self, last: CachedRow | None, batch: _Batch) -> None:
        """Take the last row back from the batch until it is known what follows it."""
        if self._held is None:
            if last is not None:
                batch.take_last()
            self._held = _Held(last, [])

    def _add_held(self, batch: _Batch) -> None:
        """Add the held row with its LOB pieces: nothing more belongs to it."""
        held, self._held = self._held, None
        if held is None:
            return
        values = LobPieces(held.row, held.pieces, self._problem)
        found = self._row(held.row, values.of_row) if held.row is not None else None
        if held.row is not None and found is not None:
            batch.add(held.row, found)
        for locator, piece, assigned in values.of_others:
            found = self._lob_update(piece, locator.where, assigned)
            if found is not None:
                batch.add(piece, found)

    def _problem(self, owner: str, table: str, reason: str, detail: str = "") -> None:
        self._problems.append((owner, table, reason, detail))

    def _row(self, row: CachedRow, lobs: Assigned = NOTHING) -> Encoded | None:
        try:
            if row.operation == Operation.INSERT:
                return self._insert(row, lobs)
            if row.operation == Operation.UPDATE:
                return self._update(row, lobs)
            if row.operation == Operation.DELETE:
                return self._delete(row)
        except CaptureError as error:
            self._refused(row, error)
            return None
        return self._ddl(row)

    def _refused(self, row: CachedRow, error: CaptureError) -> None:
        """Report a row that cannot be read like one that LogMiner does not support, unless it must end capture."""
        address = f"redo address {row.place >> 32}.{row.place & 0xFFFFFFFF}"
        if error.code != UNREADABLE or self._abends:
            error.where = error.where or f"{row.owner}.{row.table}, {address}"
            error.hint = error.hint or WAYS
            raise error
        reason = f"the SQL_REDO of operation {Operation(row.operation).name} cannot be read"
        self._problem(row.owner, row.table, reason, f" ({address}: {error.message}; {AFTERWARDS})")

    def _insert(self, row: CachedRow, lobs: Assigned) -> Encoded:
        head = insert_head(row.redo)
        if head is None:
            raise CaptureError(f"SQL_REDO is not an insert: {row.redo[:200]!r}", code=UNREADABLE)
        names, begin = head
        values: Sequence[Value] = insert_values(row.redo, begin, len(names))
        if lobs:
            merged = {**dict(zip(names, values, strict=True)), **lobs}
            names, values = tuple(merged), list(merged.values())
        shape, indexes = self._columns(row, names)
        if UNSUPPORTED in values:
            in_lob_records = frozenset(index for name, index in zip(names, indexes, strict=True) if name in lobs)
            pairs = self._supported(row, shape, dict(zip(indexes, values, strict=True)), in_lob_records)
            return shape.definition, IoType.INSERT, encode_image(sorted(pairs.items()) if lobs else pairs.items())
        pairs_in_order = zip(indexes, values, strict=True)
        return shape.definition, IoType.INSERT, encode_image(sorted(pairs_in_order) if lobs else pairs_in_order)

    def _columns(self, row: CachedRow, names: tuple[bytes, ...]) -> tuple[RedoTable, tuple[int, ...]]:
        """The shape of a table, and the places of columns in it."""
        key = row.owner, row.table, names
        known = self._known.get(key)
        if known is None or self._version != self._definitions.version:
            shape = self._definitions.shape(row.owner, row.table, names)
            if self._version != self._definitions.version:
                self._known.clear()
                self._version = self._definitions.version
            known = self._known[key] = shape, tuple(shape.places[name] for name in names)
        return known

    def _update(self, row: CachedRow, lobs: Assigned) -> Encoded | None:
        statement = parse_update(row.redo)
        if lobs:
            statement = RedoStatement([*statement.assigned, *lobs.items()], statement.where)
        shape, after, before = self._sides(row, statement)
        identity = _identity(shape, before)
        if identity is None and row.undo:
            shape, earlier, later = self._sides(row, parse_update(row.undo))
            identity = _identity(shape, {**later, **earlier, **before})
        if UNSUPPORTED in after.values():
            in_lob_records = frozenset(shape.places[name] for name in lobs)
            after = self._supported(row, shape, after, in_lob_records)
        return self._updated(row, shape, identity, after)

    def _updated(
        self, row: CachedRow, shape: RedoTable, identity: dict[int, Value] | None, after: dict[int, Value]
    ) -> Encoded | None:
        if identity is None:
            self._problem(row.owner, row.table, "its key is not logged (ADD TRANDATA, supplemental logging)")
            return None
        if not after:
            return None
        image = encode_image(sorted({**identity, **after}.items()))
        if not shape.definition.key or any(index in after and after[index] != old for index, old in identity.items()):
            data = join_key_update(encode_image(identity.items()), image)
            return shape.definition, IoType.KEY_FIELD_COMP, data
        return shape.definition, IoType.FIELD_COMP, image

    def _lob_update(self, row: CachedRow, where: Pairs, assigned: Assigned) -> Encoded | None:
        """The update of a single column for a LOB that was changed without its row."""
        shape, after, before = self._sides(row, RedoStatement(list(assigned.items()), where))
        return self._updated(row, shape, _identity(shape, before), after)

    def _delete(self, row: CachedRow) -> Encoded | None:
        shape, _, before = self._sides(row, parse_delete(row.redo))
        identity = _identity(shape, before)
        if identity is None and row.undo:
            shape, before, _ = self._sides(row, parse_insert(row.undo))
            identity = _identity(shape, before)
        if identity is None:
            self._problem(row.owner, row.table, "its key is not logged (ADD TRANDATA, supplemental logging)")
            return None
        return shape.definition, IoType.DELETE, encode_image(identity.items())

    def _sides(self, row: CachedRow, statement: RedoStatement) -> tuple[RedoTable, dict[int, Value], dict[int, Value]]:
        """The values of a statement by the places of their columns: the assigned ones, and those of its conditions."""
        assigned, where = statement
        pairs = [pair for pair in where if pair[0] is not ROWID]
        count = len(pairs)
        pairs += assigned
        shape, indexes = self._columns(row, tuple([name for name, _ in pairs]))
        values = [value for _, value in pairs]
        after = dict(zip(indexes[count:], values[count:], strict=True))
        return shape, after, dict(zip(indexes[:count], values[:count], strict=True))

    def _supported(
        self, row: CachedRow, shape: RedoTable, values: dict[int, Value], in_lob_records: frozenset[int]
    ) -> dict[int, Value]:
        """Remove the values that the log does not contain, and report them unless they are in ``in_lob_records``."""
        for index, value in values.items():
            if value == UNSUPPORTED and index not in in_lob_records:
                column = shape.definition.columns[index].name
                self._problem(
                    row.owner, row.table, f"column {column} has a value that the log does not contain as text"
                )
        return {index: value for index, value in values.items() if value != UNSUPPORTED}

    def _ddl(self, row: CachedRow) -> Encoded | None:
        words = row.redo.decode("utf-8", "replace").upper().split()
        if words[:2] == ["TRUNCATE", "TABLE"]:
            shape = self._definitions.shape(row.owner, row.table, ())
            return shape.definition, IoType.PURGE_DATA, b""
        self._definitions.forget(row.owner, row.table)
        self._problem(row.owner, row.table, f"DDL is not replicated: {' '.join(words[:3])}")
        return None


def _identity(shape: RedoTable, before: dict[int, Value]) -> dict[int, Value] | None:
    """The values that identify a row: those of its key or, without a key, all known ones. None if any is missing."""
    key = shape.definition.key or tuple(sorted([index for index, value in before.items() if value != UNSUPPORTED]))
    identity = {index: before.get(index, UNSUPPORTED) for index in key}
    return None if not identity or UNSUPPORTED in identity.values() else identity


def _pieces(owners: list[tuple[MessageRun, int]]) -> tuple[TransactionPiece, ...]:
    """Group rows by transaction.

    Adjacent runs of one transaction form one piece; a run without rows passes its flags on.
    """
    pieces: list[TransactionPiece] = []
    first = 0
    for _, group in itertools.groupby(owners, key=lambda owner: id(owner[0].header)):
        runs = list(group)
        count = sum(rows for _, rows in runs)
        if count:
            header, begins, ends = runs[0][0].header, runs[0][0].begins, runs[-1][0].ends
            pieces.append(TransactionPiece(header, first, count, begins, ends))
            first += count
    return tuple(pieces)
