"""Rows of committed transactions to a ChangeBatch: SQL text is taken apart here, and nowhere earlier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from ggshell.capture.source import MessageRun
from ggshell.databases.redo.definitions import Definitions, Shape
from ggshell.databases.redo.literals import UNSUPPORTED, Value
from ggshell.databases.redo.messages import CachedRow, unpack_row
from ggshell.databases.redo.rows import Operation
from ggshell.databases.redo.sql import (
    ROWID,
    Statement,
    insert_head,
    insert_values,
    parse_delete,
    parse_insert,
    parse_update,
)
from ggshell.errors import CaptureError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionPiece

Problem = Callable[[str, str, str], None]
"""Told of what cannot be captured: owner, table, why."""
Encoded = tuple[TableDefinition, int, bytes]


class Encoder:
    """Makes batches.  ``problem`` is told of each row or value that cannot be captured, and what could be is captured."""

    def __init__(self, definitions: Definitions, problem: Problem) -> None:
        self._definitions = definitions
        self._problem = problem
        self._known: dict[tuple[str, str, tuple[bytes, ...]], tuple[Shape, tuple[int, ...]]] = {}
        self._version = -1

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        """The rows of some runs as one batch; None when there is none.  Raises CaptureError for SQL that is none."""
        tables: dict[TableDefinition, int] = {}
        numbers: list[int] = []
        io_types: list[int] = []
        places: list[int] = []
        images: list[bytes] = []
        owners: list[tuple[MessageRun, int]] = []
        for run in runs:
            first = len(images)
            for part in run.parts:
                for message in part:
                    row = unpack_row(message)
                    found = self._row(row)
                    if found is None:
                        continue
                    definition, io_type, image = found
                    numbers.append(tables.setdefault(definition, len(tables)))
                    io_types.append(io_type)
                    places.append(row.place)
                    images.append(image)
            owners.append((run, len(images) - first))
        if not images:
            return None
        length = np.array([len(image) for image in images], dtype=np.int64)
        return ChangeBatch(
            tables=tuple(tables),
            table=np.array(numbers, dtype=np.uint16),
            io_type=np.array(io_types, dtype=np.uint8),
            position=np.array(places, dtype=np.uint64),
            buffer=b"".join(images),
            start=np.cumsum(length) - length,
            length=length,
            rba=np.zeros(len(length), dtype=np.int64),
            pieces=_pieces(owners),
        )

    def _row(self, row: CachedRow) -> Encoded | None:
        try:
            if row.operation == Operation.INSERT:
                return self._insert(row)
            if row.operation == Operation.UPDATE:
                return self._update(row)
            if row.operation == Operation.DELETE:
                return self._delete(row)
        except CaptureError as error:
            error.where = (
                error.where or f"{row.owner}.{row.table}, redo address {row.place >> 32}.{row.place & 0xFFFFFFFF}"
            )
            raise
        return self._ddl(row)

    def _insert(self, row: CachedRow) -> Encoded:
        head = insert_head(row.redo)
        if head is None:
            raise CaptureError(f"SQL_REDO is no insert: {row.redo[:200]!r}", code="GGS-00521")
        names, begin = head
        shape, indexes = self._columns(row, names)
        values = insert_values(row.redo, begin, len(names))
        if UNSUPPORTED in values:
            pairs = self._supported(row, shape, dict(zip(indexes, values, strict=True)))
            return shape.definition, IoType.INSERT, encode_image(pairs.items())
        return shape.definition, IoType.INSERT, encode_image(zip(indexes, values, strict=True))

    def _columns(self, row: CachedRow, names: tuple[bytes, ...]) -> tuple[Shape, tuple[int, ...]]:
        """A table's shape, and the places of columns in it."""
        key = row.owner, row.table, names
        known = self._known.get(key)
        if known is None or self._version != self._definitions.version:
            shape = self._definitions.shape(row.owner, row.table, names)
            if self._version != self._definitions.version:
                self._known.clear()
                self._version = self._definitions.version
            known = self._known[key] = shape, tuple(shape.places[name] for name in names)
        return known

    def _update(self, row: CachedRow) -> Encoded | None:
        statement = parse_update(row.redo)
        shape, after, before = self._sides(row, statement)
        identity = _identity(shape, before)
        if identity is None and row.undo:
            shape, earlier, later = self._sides(row, parse_update(row.undo))
            identity = _identity(shape, {**later, **earlier, **before})
        if identity is None:
            self._problem(row.owner, row.table, "its key is not logged (ADD TRANDATA, supplemental logging)")
            return None
        if UNSUPPORTED in after.values():
            after = self._supported(row, shape, after)
        whole = {**identity, **after}
        image = encode_image(sorted(whole.items()))
        if not shape.definition.key or any(index in after and after[index] != old for index, old in identity.items()):
            data = join_key_update(encode_image(identity.items()), image)
            return shape.definition, IoType.KEY_FIELD_COMP, data
        return shape.definition, IoType.FIELD_COMP, image

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

    def _sides(self, row: CachedRow, statement: Statement) -> tuple[Shape, dict[int, Value], dict[int, Value]]:
        """A statement's values by the places of their columns: those assigned, and those found by."""
        assigned, where = statement
        pairs = [pair for pair in where if pair[0] is not ROWID]
        count = len(pairs)
        pairs += assigned
        shape, indexes = self._columns(row, tuple([name for name, _ in pairs]))
        values = [value for _, value in pairs]
        after = dict(zip(indexes[count:], values[count:], strict=True))
        return shape, after, dict(zip(indexes[:count], values[:count], strict=True))

    def _supported(self, row: CachedRow, shape: Shape, values: dict[int, Value]) -> dict[int, Value]:
        """Without the values that LogMiner could not print."""
        for index, value in values.items():
            if value == UNSUPPORTED:
                column = shape.definition.columns[index].name
                self._problem(row.owner, row.table, f"column {column} has a value that the log does not hold as text")
        return {index: value for index, value in values.items() if value != UNSUPPORTED}

    def _ddl(self, row: CachedRow) -> Encoded | None:
        words = row.redo.decode("utf-8", "replace").upper().split()
        if words[:2] == ["TRUNCATE", "TABLE"]:
            shape = self._definitions.shape(row.owner, row.table, ())
            return shape.definition, IoType.PURGE_DATA, b""
        self._definitions.forget(row.owner, row.table)
        self._problem(row.owner, row.table, f"DDL is not replicated: {' '.join(words[:3])}")
        return None


def _identity(shape: Shape, before: dict[int, Value]) -> dict[int, Value] | None:
    """The values that identify a row: its key's, or all that are known of a table without a key; None when they lack."""
    key = shape.definition.key or tuple(sorted([index for index, value in before.items() if value != UNSUPPORTED]))
    identity = {index: before.get(index, UNSUPPORTED) for index in key}
    return None if not identity or UNSUPPORTED in identity.values() else identity


def _pieces(owners: list[tuple[MessageRun, int]]) -> tuple[TransactionPiece, ...]:
    """Neighbouring runs of one transaction are one piece; a run without rows passes its flags on."""
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
