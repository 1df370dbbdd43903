"""Converts rows of a frame back to the input of a trail writer: transactions in order, table definitions, row images.

Rows have the trail's columns (``owner``, ``table``, ``op``, ``columns``, and optionally ``before``, ``csn``, ``xid``,
``commit_ts``, ``audit_pos``). Adjacent rows with the same CSN and transaction id form a transaction. Without CSNs, every
``per_transaction`` rows form one, with CSNs that continue after the last one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ggshell.errors import ConflictError, UsageError
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import join_pairs
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.trail import iotypes
from ggshell.types import Csn, TableName

ROWS: Final = 10_000
_ONE_IMAGE: Final = frozenset({IoType.INSERT, IoType.UPDATE, IoType.FIELD_COMP, IoType.PURGE_DATA})
_TEXT: Final = ("text", 25)
Values = dict[str, str | None]


class FrameRow(NamedTuple):
    """One row of the frame; ``time`` in microseconds since 1970 UTC."""

    table: TableName
    io_type: int
    columns: Values
    before: Values
    csn: Csn | None = None
    xid: str = ""
    time: int | None = None
    position: int = 0


@dataclass
class SeenColumns:
    """The columns of a table's rows, in order of appearance, and those that identify a row."""

    columns: dict[str, None] = field(default_factory=dict)
    identity: dict[str, None] = field(default_factory=dict)

    def take_in(self, columns: Iterable[str], identity: Iterable[str]) -> None:
        """Add the columns of further rows."""
        for name in identity:
            self.identity[name] = self.columns[name] = None
        for name in columns:
            self.columns[name] = None

    def definition(self, name: TableName) -> TableDefinition:
        """A definition with all columns as text."""
        names = list(self.columns)
        key = tuple(names.index(each) for each in self.identity) if len(self.identity) < len(names) else ()
        return TableDefinition(name, tuple(Column(each, *_TEXT) for each in names), key)


def rows_of(batch: pa.RecordBatch) -> Iterator[FrameRow]:
    """The rows of a batch. Raises UsageError for a row that a trail cannot contain."""
    names = set(batch.schema.names)
    missing = {"owner", "table", "columns"} - names
    if missing or not names & {"op", "io_type"}:
        raise UsageError(
            f"rows for a trail require {', '.join(sorted(missing)) or 'op'}",
            hint="select owner, table, op, columns (and csn, xid, commit_ts, before), or set option table for a table's rows",
        )
    count = batch.num_rows
    kinds = [_io_type(value) for value in _list(batch, "op" if "op" in names else "io_type", count)]
    values = zip(
        _list(batch, "owner", count),
        _list(batch, "table", count),
        kinds,
        _list(batch, "columns", count),
        _list(batch, "before", count),
        _list(batch, "csn", count),
        _list(batch, "xid", count),
        _list(batch, "commit_ts", count),
        _list(batch, "audit_pos", count),
        strict=True,
    )
    for owner, table, kind, columns, before, csn, xid, time, position in values:
        number = None if csn is None else _csn(csn)
        name = TableName(owner or "", table or "") if kind == IoType.DDL else TableName(_text(owner), _text(table))
        yield FrameRow(name, kind, dict(columns or ()), dict(before or ()), number, xid or "", time, position or 0)


def _list(batch: pa.RecordBatch, name: str, count: int) -> Sequence[Any]:
    place = batch.schema.get_field_index(name)
    if place < 0:
        return [None] * count
    column = batch.column(place)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def _text(value: str | None) -> str:
    if not value:
        raise UsageError("a row for a trail requires an owner and a table")
    return value


def _io_type(value: str | int | None) -> int:
    try:
        number = iotypes.io_type_number(str(value))
    except ValueError as error:
        raise UsageError(str(error)) from None
    if number not in (IoType.DELETE, IoType.DDL) and number not in _ONE_IMAGE and number not in TWO_IMAGES:
        raise UsageError(f"operation {value} is not a change of a row or a DDL statement")
    return number


def _csn(text: str) -> Csn:
    try:
        return Csn.parse(text)
    except ValueError as error:
        raise UsageError(str(error), hint="write a CSN as the trail's column csn shows it") from None


class RowDefinitions:
    """Chooses the definition for a table's rows: the newest known one that has all their columns.

    Definitions without columns, which are those of DDL statements, come last.
    """

    def __init__(self, known: Sequence[TableDefinition]) -> None:
        self._known: dict[TableName, list[tuple[TableDefinition, dict[str, int]]]] = {}
        newest_first = [*reversed(known)]
        newest_first.sort(key=lambda each: not each.columns)
        for each in newest_first:
            places = {column.name: place for place, column in enumerate(each.columns)}
            self._known.setdefault(each.name, []).append((each, places))

    def choose(self, row: FrameRow) -> tuple[TableDefinition, dict[str, int]]:
        """The definition, and the index of each column in it. Raises UsageError if none fits."""
        if row.io_type == IoType.DDL:
            return TableDefinition(row.table, (), ()), {}
        known = self._known.get(row.table, [])
        for each in known:
            if row.columns.keys() <= each[1].keys() and row.before.keys() <= each[1].keys():
                return each
        said = ", ".join([*row.columns, *row.before])
        raise UsageError(
            f"no definition of {row.table} has the columns {said}",
            hint="set option definitions to a trail that defines the table",
        )


def image_of(row: FrameRow, places: dict[str, int]) -> bytes:
    """The data area of a row, or of a DDL statement, whose columns are the pairs of its record."""
    if row.io_type == IoType.DDL:
        return join_pairs({name: value or "" for name, value in row.columns.items()})
    if row.io_type == IoType.DELETE:
        return _image(row.before or row.columns, places)
    if row.io_type in TWO_IMAGES:
        return join_key_update(_image(row.before, places), _image(row.columns, places))
    return _image(row.columns, places)


def _image(values: Values, places: dict[str, int]) -> bytes:
    found = [(places[name], None if value is None else value.encode()) for name, value in values.items()]
    return encode_image(sorted(found, key=lambda each: each[0]))


def transactions(
    rows: Iterable[FrameRow], after: Csn | None, now: int, per_transaction: int
) -> Iterator[tuple[TransactionHeader, Iterator[FrameRow]]]:
    """Each transaction with its rows, which must be consumed before the next one.

    Raises ConflictError if they are out of order.
    """
    count = itertools.count()
    last = after
    numbered = after or Csn(0)

    def key(row: FrameRow) -> object:
        return next(count) // per_transaction if row.csn is None else (row.csn, row.xid)

    for _, members in itertools.groupby(rows, key):
        group = iter(members)
        first = next(group)
        csn = Csn(numbered.value + 1, numbered.form) if first.csn is None else first.csn
        if last is not None and csn.value <= last.value:
            raise ConflictError(
                f"CSN {csn} comes after CSN {last}",
                hint="sort the frame by csn, seqno and rba; a trail cannot take transactions that it already contains",
            )
        last = numbered = csn
        time = now if first.time is None else first.time
        yield TransactionHeader(first.xid or str(csn.value), csn, time), itertools.chain([first], group)


class _Builder:
    """Collects rows and pieces for the next batch."""

    def __init__(self, choose: Callable[[FrameRow], tuple[TableDefinition, dict[str, int]]]) -> None:
        self._choose = choose
        self._tables: dict[TableDefinition, int] = {}
        self._rows: list[tuple[int, int, int]] = []
        self._data: list[bytes] = []
        self._pieces: list[TransactionPiece] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, header: TransactionHeader, rows: list[FrameRow], *, begins: bool, ends: bool) -> None:
        self._pieces.append(TransactionPiece(header, len(self._rows), len(rows), begins, ends))
        for row in rows:
            definition, places = self._choose(row)
            table = self._tables.setdefault(definition, len(self._tables))
            self._rows.append((table, row.io_type, row.position))
            self._data.append(image_of(row, places))

    def take(self) -> ChangeBatch:
        tables, kinds, positions = zip(*self._rows, strict=True)
        lengths = np.fromiter(map(len, self._data), dtype=np.int64, count=len(self._data))
        batch = ChangeBatch(
            tables=tuple(self._tables),
            table=np.array(tables, dtype=np.uint16),
            io_type=np.array(kinds, dtype=np.uint8),
            position=np.array(positions, dtype=np.uint64),
            buffer=b"".join(self._data),
            start=np.cumsum(lengths) - lengths,
            length=lengths,
            rba=np.zeros(len(lengths), dtype=np.int64),
            pieces=tuple(self._pieces),
        )
        self.__init__(self._choose)  # type: ignore[misc]
        return batch


def rebuild(
    rows: Iterable[FrameRow], definitions: RowDefinitions, *, after: Csn | None, now: int, per_transaction: int
) -> Iterator[ChangeBatch]:
    """Batches for a trail writer. Raises UsageError and ConflictError like the functions above."""
    builder = _Builder(definitions.choose)
    for header, group in transactions(rows, after, now, per_transaction):
        begins, part = True, list(itertools.islice(group, ROWS))
        while part:
            following = list(itertools.islice(group, ROWS))
            builder.add(header, part, begins=begins, ends=not following)
            if len(builder) >= ROWS:
                yield builder.take()
            begins, part = False, following
    if len(builder):
        yield builder.take()
