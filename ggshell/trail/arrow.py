"""Rows of a trail as Arrow record batches, built with array operations; only the requested columns are decoded.

The columns, in this order: trail, file sequence number ``seqno``, ``rba``; ``csn`` and ``xid`` as printed, ``commit_ts`` and
``io_time`` (UTC, microseconds); ``op`` (name) and ``io_type``; ``before_after`` (A, B), ``trans_ind``; ``owner``, ``table``;
``columns`` and ``before`` (maps of column name to text; ``before``: the identifying values before a key update, or those of
a deleted row; for a DDL statement, ``columns`` are the pairs of its record), ``tokens`` (of a transaction's first record);
``length`` of the data area, ``audit_rba``, ``audit_pos``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ggshell.errors import TrailError
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import ddl_pairs
from ggshell.record.definition import TableDefinition
from ggshell.record.distinct import distinct
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.record.ragged import items, shorts
from ggshell.trail import iotypes
from ggshell.trail.encode import trans_inds

TEXTS: Final = pa.map_(pa.string(), pa.string())
TIME: Final = pa.timestamp("us", "UTC")
SCHEMA: Final = pa.schema(
    [
        *[
            ("trail", pa.string()),
            ("seqno", pa.int32()),
            ("rba", pa.int64()),
            ("csn", pa.string()),
            ("xid", pa.string()),
        ],
        *[("commit_ts", TIME), ("io_time", TIME), ("op", pa.string()), ("io_type", pa.uint8())],
        *[("before_after", pa.string()), ("trans_ind", pa.uint8()), ("owner", pa.string()), ("table", pa.string())],
        *[("columns", TEXTS), ("before", TEXTS), ("tokens", TEXTS), ("length", pa.int64()), ("audit_rba", pa.int64())],
        ("audit_pos", pa.uint64()),
    ]
)
_LONG: Final = 0xFFFF
_NULL: Final = 0xFFFF
_MOST: Final = 0x7FFFFFFF
"""The largest buffer, in bytes, that 32-bit offsets can address."""


def _numbers(values: NDArray[Any], kind: pa.DataType, is_null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return an Arrow array over the same memory.

    ``pa.array`` is not used, because it imports pandas to check whether its argument is a pandas object."""
    known = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(np.ascontiguousarray(values))])


def _words(texts: Sequence[str]) -> pa.Array:
    """Return texts as an Arrow array, also without ``pa.array``."""
    words = [text.encode() for text in texts]
    edges = np.zeros(len(words) + 1, dtype=np.int32)
    np.cumsum([len(word) for word in words], out=edges[1:])
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(edges), pa.py_buffer(b"".join(words)))


class Values(NamedTuple):
    """Column values of many rows: row, column, place and length of the text, and whether it is NULL."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    is_null: NDArray[np.bool_]

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Values:
        return Values._make(each[which] for each in self)


def _by_rows(steps: Sequence[Values], rows: int) -> Values:
    """Sort values by row; each step holds the first values of all rows, then their second values, and so on."""
    counts = np.zeros(rows, dtype=np.int64)
    for step in steps:
        counts[step.row] += 1
    every = int(counts.sum())
    row, column, start, length = (np.empty(every, dtype=np.int64) for _ in range(4))
    values = Values(row, column, start, length, np.empty(every, dtype=np.bool_))
    first = np.cumsum(counts) - counts
    for number, step in enumerate(steps):
        place = first[step.row] + number
        for whole, part in zip(values, step, strict=True):
            whole[place] = part
    return values


def _by_columns(steps: Sequence[Values], place: NDArray[np.int64]) -> Values:
    """The values of some rows, by column and row. ``place``: the new number of each row; negative for others."""
    parts = []
    for step in steps:
        row = place[step.row]
        keep = row >= 0
        fresh = step._replace(row=row)
        parts.append(fresh if keep.all() else fresh.chosen(keep))
    if not parts:
        empty = np.zeros(0, np.int64)
        return Values(empty, empty, empty, empty, np.zeros(0, np.bool_))
    whole = Values._make(np.concatenate(each) for each in zip(*parts, strict=True))
    column = whole.column.astype(np.uint16)
    if not (column[1:] < column[:-1]).any() and all(len(part.row) == len(parts[0].row) for part in parts):
        return whole  # all rows have the same columns
    return whole.chosen(np.lexsort((whole.row, column)))


class ColumnValues(NamedTuple):
    """A column of many rows: its texts, and which rows have the column (its value can be NULL)."""

    texts: pa.Array
    given: NDArray[np.bool_]


class ArrowRows:
    """Converts one batch to Arrow; what several columns need is computed once.

    ``overhead``: the bytes that encryption adds to each data area, if the batch is still encrypted."""

    def __init__(self, batch: ChangeBatch, trail: str, file: object, overhead: int = 0) -> None:
        self.batch = batch
        self._overhead = overhead
        self._trail = trail
        self._file = file

    def record_batch(self, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the requested columns. Raises TrailError if a row's data area is not a valid row image."""
        if not columns:  # a batch without columns that still has its number of rows
            return pa.RecordBatch.from_struct_array(pa.nulls(len(self.batch), pa.struct([])))
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        return pa.record_batch([_BUILDERS[name](self) for name in columns], schema=schema)

    def table_batch(self, definition: TableDefinition) -> pa.RecordBatch:
        """Return the table's columns as text, one Arrow column each; the batch must hold rows of this table only.

        A column that a record does not contain is NULL, like a column whose value is NULL. A deleted row returns its
        identifying values.
        """
        arrays = []
        for index in range(len(definition.columns)):
            start, length = np.zeros(len(self.batch), np.int64), np.zeros(len(self.batch), np.int64)
            is_null = np.ones(len(self.batch), np.bool_)
            for step in self._image_steps:
                mine = step.column == index
                if len(mine) == len(self.batch) and mine.all():
                    start, length, is_null = step.start, step.length, step.is_null
                    break
                rows = step.row[mine]
                start[rows], length[rows], is_null[rows] = step.start[mine], step.length[mine], step.is_null[mine]
            arrays.append(self._texts(start, length, is_null))
        return pa.record_batch(arrays, names=[column.name for column in definition.columns])

    def images_of(self, number: int, chosen: NDArray[np.int64], *, before: bool = False) -> list[ColumnValues]:
        """The columns of table ``number`` in the images of some of its rows, or in their before parts.

        ``chosen``: the rows, in order.
        """
        steps = self._before_steps if before else self._image_steps
        place = np.full(len(self.batch), -1)
        place[chosen] = np.arange(len(chosen))
        values = _by_columns(steps, place)
        edges = np.searchsorted(values.column, np.arange(len(self.batch.tables[number].columns) + 1))
        if edges[-1] != len(values.column):
            self._require(values.column < len(edges) - 1, chosen[values.row])
        return [self._column(values, low, high, len(chosen)) for low, high in pairwise(edges.tolist())]

    def _column(self, values: Values, low: int, high: int, count: int) -> ColumnValues:
        part = values.chosen(slice(low, high))
        if len(part.row) == count and not part.is_null.any():
            return ColumnValues(self._texts(part.start, part.length, part.is_null), np.ones(count, np.bool_))
        start, length = np.zeros(count, np.int64), np.zeros(count, np.int64)
        is_null, given = np.ones(count, np.bool_), np.zeros(count, np.bool_)
        start[part.row], length[part.row], is_null[part.row] = part.start, part.length, part.is_null
        given[part.row] = True
        return ColumnValues(self._texts(start, length, is_null), given)

    @cached_property
    def raw(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.batch.buffer if len(self.batch.buffer) >= 6 else bytes(6), dtype=np.uint8)

    @cached_property
    def pairs(self) -> NDArray[np.uint16]:
        """The little-endian 2-byte number that begins at each byte of the buffer."""
        return shorts(self.raw)

    @cached_property
    def is_before(self) -> NDArray[np.bool_]:
        """Mark the rows that hold before images: deleted rows, and the before images of updates."""
        deleted: NDArray[np.bool_] = self.batch.io_type == int(IoType.DELETE)
        return deleted if self.batch.befores is None else deleted | self.batch.befores

    @cached_property
    def is_ddl(self) -> NDArray[np.bool_]:
        """Mark the rows that are DDL statements, which have no image."""
        found: NDArray[np.bool_] = self.batch.io_type == int(IoType.DDL)
        return found

    @cached_property
    def piece(self) -> NDArray[np.int64]:
        """Each row's transaction, as an index into the batch's pieces."""
        return np.repeat(np.arange(len(self.batch.pieces)), [piece.count for piece in self.batch.pieces])

    def of_pieces(self, values: Sequence[str]) -> pa.Array:
        return _words(values).take(_numbers(self.piece, pa.int64()))

    def of_tables(self, values: Sequence[str]) -> pa.Array:
        return _words(values).take(_numbers(self.batch.table, pa.uint16()))

    @cached_property
    def _parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Begin and end of each row's before part (empty if it has none), and begin and end of its image."""
        start, end = self.batch.start, self.batch.start + np.where(self.is_ddl, 0, self.batch.length)
        two = np.isin(self.batch.io_type, list(TWO_IMAGES))
        size = np.where(two, _u16(self.pairs, start), 0)
        long = two & (size == _LONG)
        first = start + 2 * two + 4 * long
        size = np.where(long, _u32(self.pairs, start + 2), size)
        middle = first + size
        self._require(middle <= end)
        return np.where(two, first, start), middle, middle, end

    @cached_property
    def _image_steps(self) -> list[Values]:
        return self._steps(self._parts[2], self._parts[3])

    @cached_property
    def _images(self) -> Values:
        return _by_rows(self._image_steps, len(self.batch))

    @cached_property
    def _befores(self) -> Values:
        return _by_rows(self._before_steps, len(self.batch))

    @cached_property
    def _before_steps(self) -> list[Values]:
        return self._steps(self._parts[0], self._parts[1])

    def _steps(self, place: NDArray[np.int64], end: NDArray[np.int64]) -> list[Values]:
        """Split the images: the first values of all rows, then their second values, and so on."""
        found = list[Values]()
        openings = items(self.raw.data, 6)
        rows = np.flatnonzero(place < end)
        at, stop = place[rows], end[rows]
        while len(rows):
            heads = openings[np.minimum(at, len(openings) - 1)].view("<u2").reshape(-1, 3).astype(np.int64)
            column, length, indicator = heads.T
            is_null, long = indicator == _NULL, length == _LONG
            start, size = at + 8, length - 4
            if long.any():
                start, size = start + 2 * long, np.where(long, _u32(self.pairs, at + 6), size)
            after = start + size
            good = (size >= 0) & (after <= stop) & (indicator == 0)
            if is_null.any():
                size, start = np.where(is_null, 0, size), np.where(is_null, at, start)
                after = np.where(is_null, at + 6, after)
                good |= is_null & (length == 2) & (after <= stop)
            self._require(good, rows)
            found.append(Values(rows, column, start, size, is_null))
            left = after < stop
            rows, at, stop = (rows, after, stop) if left.all() else (rows[left], after[left], stop[left])
        return found

    def _require(self, good: NDArray[np.bool_], rows: NDArray[np.int64] | None = None) -> None:
        if not good.all():
            number = int(np.argmin(good))
            row = int(rows[number]) if rows is not None else number
            raise TrailError(
                f"trail file {self._file} is damaged at RBA {int(self.batch.rba[row])}: expected a row image",
                where=f"{self._file}, RBA {int(self.batch.rba[row])}",
            )

    def _texts(self, start: NDArray[np.int64], length: NDArray[np.int64], is_null: NDArray[np.bool_]) -> pa.Array:
        """Return texts that lie in the buffer without copying each value first.

        The whole buffer becomes one Arrow array in which values and the gaps between them alternate; ``take`` then
        selects the values."""
        there = np.flatnonzero(~is_null)
        if not len(there):
            return pa.nulls(len(start), pa.string())
        first, size = start[there], length[there]
        turn = 2 * np.arange(len(there))
        if (first[1:] < first[:-1] + size[:-1]).any():  # rows joined from fragments stand after all others
            order = np.argsort(first, kind="stable")
            first, size, turn[order] = first[order], size[order], turn.copy()
        kind, offset = (pa.StringArray, np.int32) if len(self.raw) <= _MOST else (pa.LargeStringArray, np.int64)
        edges = np.empty(2 * len(there), dtype=offset)
        edges[0::2], edges[1::2] = first, first + size
        texts = kind.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(self.raw))
        if len(there) == len(start):
            return texts.take(_numbers(turn, pa.int64())).cast(pa.string())
        places = np.zeros(len(start), dtype=np.int64)
        places[there] = turn
        return texts.take(_numbers(places, pa.int64(), is_null)).cast(pa.string())

    def maps(self, values: Values, chosen: NDArray[np.bool_] | None = None) -> pa.Array:
        """Return maps of column names to texts."""
        if chosen is not None:
            keep = chosen[values.row]
            values = values.chosen(keep)
        edges = np.zeros(len(self.batch) + 1, dtype=np.int32)
        np.cumsum(np.bincount(values.row, minlength=len(self.batch)), out=edges[1:])
        names, first = list[str](), list[int]()
        for definition in self.batch.tables:
            first.append(len(names))
            names += [column.name for column in definition.columns]
        table = self.batch.table[values.row]
        counts = np.array([len(each.columns) for each in self.batch.tables], dtype=np.int64)
        known = values.column < counts[table] if len(counts) else np.zeros(0, np.bool_)
        if not known.all():
            self._require(known, values.row)
        keys = _words(names).take(_numbers(np.array(first, dtype=np.int64)[table] + values.column, pa.int64()))
        return pa.MapArray.from_arrays(
            _numbers(edges, pa.int32()), keys, self._texts(values.start, values.length, values.is_null)
        )


def _u16(pairs: NDArray[np.uint16], place: NDArray[np.int64]) -> NDArray[np.int64]:
    return pairs[np.minimum(place, len(pairs) - 1)].astype(np.int64)


def _u32(pairs: NDArray[np.uint16], place: NDArray[np.int64]) -> NDArray[np.int64]:
    return _u16(pairs, place) | _u16(pairs, place + 2) << 16


def _before(rows: ArrowRows) -> pa.Array:
    """Return the before parts; the only image of a deleted row or of a before-image record counts as one."""
    deleted = rows.is_before
    befores = rows._befores
    if not deleted.any():
        return rows.maps(befores)
    images = rows._images
    keep = deleted[images.row]
    row = np.concatenate((befores.row, images.row[keep]))
    order = np.argsort(row, kind="stable")
    both = Values(
        row[order],
        np.concatenate((befores.column, images.column[keep]))[order],
        np.concatenate((befores.start, images.start[keep]))[order],
        np.concatenate((befores.length, images.length[keep]))[order],
        np.concatenate((befores.is_null, images.is_null[keep]))[order],
    )
    return rows.maps(both)


def _columns(rows: ArrowRows) -> pa.Array:
    found = rows.maps(rows._images, ~rows.is_before)
    statements = np.flatnonzero(rows.is_ddl).tolist()
    if not statements:
        return found
    parts, place = [], 0
    for row in statements:
        parts += [found.slice(place, row - place), _pairs(rows, row)]
        place = row + 1
    return pa.concat_arrays([*parts, found.slice(place)])


def _pairs(rows: ArrowRows, row: int) -> pa.Array:
    """Return the pairs of a DDL record as a map. Raises TrailError if they are damaged."""
    first = int(rows.batch.start[row])
    try:
        pairs = ddl_pairs(rows.batch.buffer[first : first + int(rows.batch.length[row])])
    except ValueError as error:
        rba = int(rows.batch.rba[row])
        raise TrailError(
            f"trail file {rows._file} is damaged at RBA {rba}: {error}", where=f"{rows._file}, RBA {rba}"
        ) from error
    edges = _numbers(np.array([0, len(pairs)], dtype=np.int32), pa.int32())
    return pa.MapArray.from_arrays(edges, _words(list(pairs)), _words(list(pairs.values())))


def _tokens(rows: ArrowRows) -> pa.Array:
    batch = rows.batch
    counts = np.zeros(len(batch), dtype=np.int64)
    keys, values = list[str](), list[str]()
    for piece in batch.pieces:
        if piece.begins:
            counts[piece.first] = 2
            keys += ["LOGCSN", "TRANID"]
            values += [str(piece.header.csn), piece.header.xid]
    edges = np.zeros(len(batch) + 1, dtype=np.int32)
    np.cumsum(counts, out=edges[1:])
    return pa.MapArray.from_arrays(_numbers(edges, pa.int32()), _words(keys), _words(values))


def _operations(rows: ArrowRows) -> pa.Array:
    used, place = distinct(rows.batch.io_type)
    return _words([iotypes.io_type_name(number) for number in used]).take(_numbers(place, pa.uint16()))


def _repeated(value: object, kind: pa.DataType) -> Callable[[ArrowRows], pa.Array]:
    return lambda rows: pa.repeat(pa.scalar(value, kind), len(rows.batch))


def _side(rows: ArrowRows) -> pa.Array:
    return _words(["A", "B"]).take(_numbers(rows.is_before.astype(np.int8), pa.int8()))


def _commit_time(rows: ArrowRows) -> pa.Array:
    times = np.array([piece.header.commit_time for piece in rows.batch.pieces], dtype=np.int64)
    return _numbers(times[rows.piece], TIME)


_BUILDERS: Final[dict[str, Callable[[ArrowRows], pa.Array]]] = {
    "trail": lambda rows: pa.repeat(rows._trail, len(rows.batch)),
    "seqno": lambda rows: pa.repeat(pa.scalar(rows.batch.seqno, pa.int32()), len(rows.batch)),
    "rba": lambda rows: _numbers(rows.batch.rba, pa.int64()),
    "csn": lambda rows: rows.of_pieces([str(piece.header.csn) for piece in rows.batch.pieces]),
    "xid": lambda rows: rows.of_pieces([piece.header.xid for piece in rows.batch.pieces]),
    "commit_ts": _commit_time,
    "io_time": _commit_time,
    "op": _operations,
    "io_type": lambda rows: _numbers(rows.batch.io_type, pa.uint8()),
    "before_after": _side,
    "trans_ind": lambda rows: _numbers(trans_inds(rows.batch), pa.uint8()),
    "owner": lambda rows: rows.of_tables([table.name.owner for table in rows.batch.tables]),
    "table": lambda rows: rows.of_tables([table.name.name for table in rows.batch.tables]),
    "columns": _columns,
    "before": _before,
    "tokens": _tokens,
    "length": lambda rows: _numbers(np.maximum(rows.batch.length - rows._overhead, 0), pa.int64()),
    "audit_rba": _repeated(0, pa.int64()),
    "audit_pos": lambda rows: _numbers(rows.batch.position, pa.uint64()),
}
