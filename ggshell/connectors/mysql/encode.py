"""Encodes row events as the rows of a batch: the rows of one table and one operation together, a column at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, cycle
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.mysql.binlog.cells import Bytes, Flags, Images, Ints, Step, assemble, padded
from ggshell.connectors.mysql.binlog.events import HEADER_SIZE, UNREADABLE, header, unreadable
from ggshell.connectors.mysql.binlog.plan import RawColumn, TablePlan
from ggshell.connectors.mysql.binlog.row_events import row_event
from ggshell.pipeline.capture.source import MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionPiece
from ggshell.record.update_images import UNCHANGED, Before, UpdateImage, Value, image_of, update_images

FEW_ROWS: Final = 16
"""Up to so many rows of a group are encoded one by one: array operations cost as much as some ten rows."""
STATEMENT_KIND: Final = 0
"""The kind of a message that is not an event: a table was truncated, or DDL was executed. Its number follows the header."""
_FILE_BITS: Final = 32


class CapturedTable(NamedTuple):
    """A table whose rows are captured: how they are read, its definition in the trail, and the rules for its images.

    ``ddl``: instead of a table, the data area of a DDL statement.
    """

    plan: TablePlan | None
    definition: TableDefinition
    images: ImageRules = DEFAULT_IMAGES
    ddl: bytes = b""


Tables = Mapping[int, CapturedTable]
"""The captured tables by their numbers in the log; the definitions of a chunk."""


class _Group:
    """The row events of one table with the same operation and columns."""

    def __init__(self, table: CapturedTable, operation: IoType, images: tuple[tuple[int, ...], ...]) -> None:
        self.table = table
        self.operation = operation
        self.images = images
        self._parts: list[bytes] = []
        self._starts: list[list[int]] = []
        self._firsts: list[int] = []
        self._positions: list[int] = []

    def add(self, data: bytes, starts: list[int], first: int, position: int) -> None:
        """Add an event. ``first``: the number of its first row in the batch; ``position``: the event's place in the log."""
        self._parts.append(data)
        self._starts.append(starts)
        self._firsts.append(first)
        self._positions.append(position)

    def rows(self) -> _Rows:
        """Encode the rows."""
        has_rows = self.operation is not IoType.PURGE_DATA and not self.table.ddl
        if self.table.plan is not None and has_rows and sum(map(len, self._starts)) <= FEW_ROWS:
            return self._few_rows(self.table.plan)
        count = len(self.images)
        sizes = np.fromiter(map(len, self._parts), dtype=np.int64, count=len(self._parts))
        numbers = np.fromiter(map(len, self._starts), dtype=np.int64, count=len(self._starts))
        starts = np.fromiter(chain.from_iterable(self._starts), dtype=np.int64, count=int(numbers.sum()))
        starts += np.repeat(np.cumsum(sizes) - sizes, numbers)
        raw, counts = padded(b"".join(self._parts)), numbers // count
        order = np.repeat(np.array(self._firsts) - np.cumsum(counts) + counts, counts) + np.arange(len(starts) // count)
        position = np.repeat(np.array(self._positions, dtype=np.uint64), counts)
        return self._repeated(order, position, _encoded(self.table, self.operation, self.images, raw, starts))

    def _few_rows(self, plan: TablePlan) -> _Rows:
        """Encode the rows one by one."""
        order, positions, rows = list[int](), list[int](), list[list[list[Value]]]()
        for data, starts, first, position in zip(self._parts, self._starts, self._firsts, self._positions, strict=True):
            images = [
                plan.row(data, start, columns) for start, columns in zip(starts, cycle(self.images), strict=False)
            ]
            width = len(self.images)
            rows += [images[at : at + width] for at in range(0, len(images), width)]
            order += range(first, first + len(images) // width)
            positions += [position] * (len(images) // width)
        encoded = _one_by_one(self.table, self.operation, rows)
        return self._repeated(np.array(order, np.int64), np.array(positions, np.uint64), encoded)

    def _repeated(self, order: Ints, position: NDArray[np.uint64], encoded: _Encoded) -> _Rows:
        if encoded.repeats is not None:
            # GETUPDATEBEFORES: one row of the log is two rows of the batch.
            order, position = np.repeat(order, encoded.repeats), np.repeat(position, encoded.repeats)
        return _Rows(self.table.definition, order, position, encoded)


class _Encoded(NamedTuple):
    """Data areas with their operations. ``befores`` and ``repeats``: see ``ChangeBatch`` and GETUPDATEBEFORES."""

    images: Images
    io_type: NDArray[np.uint8]
    befores: Flags | None = None
    repeats: Ints | None = None


class _Rows(NamedTuple):
    """The rows of one group. ``order``: the numbers of the rows in the batch."""

    definition: TableDefinition
    order: Ints
    position: NDArray[np.uint64]
    encoded: _Encoded


def encode_runs(runs: Iterable[MessageRun]) -> ChangeBatch | None:
    """Encode the rows of some runs as one batch. None when there are none. Raises CaptureError."""
    try:
        return _batch_of(runs)
    except UNREADABLE as error:
        raise unreadable(error) from error


def _batch_of(runs: Iterable[MessageRun]) -> ChangeBatch | None:
    groups: dict[tuple[int, int, IoType, tuple[tuple[int, ...], ...]], _Group] = {}
    owners: list[tuple[MessageRun, int]] = []
    total = 0
    for run in runs:
        tables: Tables = run.chunk.definitions
        file = run.header.csn.value >> _FILE_BITS << _FILE_BITS
        before = total
        for message in chain.from_iterable(run.parts):
            event = row_event(message)
            number, operation, images = _statement(message) if event is None else event[:3]
            table = tables[number]
            key = id(table), number, operation, images
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(table, operation, images)
            if event is None or table.plan is None:
                starts = [0]
            else:
                starts = table.plan.starts(event.data, event.place, len(event.data), images)
            group.add(event.data if event is not None else table.ddl, starts, total, file | header(message).start)
            total += len(starts) // len(images)
        owners.append((run, total - before))
    if not total:
        return None
    return _assembled([group.rows() for group in groups.values()], owners, total)


def statement_message(event_header: bytes, number: int) -> bytes:
    """The message that says that a table was truncated, or DDL executed; ``event_header``: that of the statement's event."""
    size = HEADER_SIZE + 8
    head = (
        event_header[:4]
        + bytes([STATEMENT_KIND])
        + event_header[5:9]
        + size.to_bytes(4, "little")
        + event_header[13:19]
    )
    return head + number.to_bytes(8, "little")


def _statement(message: bytes) -> tuple[int, IoType, tuple[tuple[int, ...], ...]]:
    return int.from_bytes(message[HEADER_SIZE : HEADER_SIZE + 8], "little"), IoType.PURGE_DATA, ((),)


def _encoded(
    table: CapturedTable, operation: IoType, columns: tuple[tuple[int, ...], ...], raw: Bytes, starts: Ints
) -> _Encoded:
    plan = table.plan
    if table.ddl:
        lengths = np.full(len(starts), len(table.ddl), dtype=np.int64)
        return _Encoded(Images(raw, starts, lengths), _types(len(starts), IoType.DDL))
    if plan is None or operation is IoType.PURGE_DATA:
        none = np.zeros(len(starts), dtype=np.int64)
        return _Encoded(Images(raw, none, none), _types(len(starts), IoType.PURGE_DATA))
    if operation is IoType.INSERT:
        steps = [plan.step(raw, column) for column in plan.values(raw, starts, columns[0])]
        return _Encoded(assemble(steps, len(starts)), _types(len(starts), operation))
    if operation is IoType.DELETE:
        whole = table.images.all_of_deletes
        wanted = set(columns[0] if whole else table.definition.identity)
        steps = [plan.step(raw, column) for column in plan.values(raw, starts, columns[0]) if column.column in wanted]
        return _Encoded(assemble(steps, len(starts)), _types(len(starts), operation))
    before, after = plan.values(raw, starts[::2], columns[0]), plan.values(raw, starts[1::2], columns[1])
    width = len(table.definition.columns)
    if table.images == DEFAULT_IMAGES and len(columns[0]) == len(columns[1]) == width:
        return _updates(table, plan, raw, before, after)
    olds, news = _lists(plan, raw, before, width), _lists(plan, raw, after, width)
    return _one_by_one(table, operation, [[*pair] for pair in zip(olds, news, strict=True)])


def _types(count: int, operation: int) -> NDArray[np.uint8]:
    return np.full(count, operation, dtype=np.uint8)


def _updates(
    table: CapturedTable, plan: TablePlan, raw: Bytes, before: list[RawColumn], after: list[RawColumn]
) -> _Encoded:
    """Updates with whole images: the identifying columns and those that changed.

    Where identifying columns changed, or there is no key, the old values of these columns and then the whole row.
    """
    identity = set(table.definition.identity)
    rows = len(before[0].place)
    changed = [new.differs(raw, old) for old, new in zip(before, after, strict=True)]
    moved = (
        np.logical_or.reduce([changed[index] for index in identity]) if table.definition.key else np.ones(rows, bool)
    )
    parts: list[tuple[Ints, Images, IoType]] = []
    if not moved.all():
        some = np.flatnonzero(~moved)
        steps = _kept(
            plan, raw, after, some, {index: flags for index, flags in enumerate(changed) if index not in identity}
        )
        parts.append((some, assemble(steps, len(some)), IoType.FIELD_COMP))
    if moved.any():
        some = np.flatnonzero(moved)
        old = _kept(plan, raw, [column for column in before if column.column in identity], some, {})
        parts.append((some, assemble(_kept(plan, raw, after, some, {}), len(some), old), IoType.KEY_FIELD_COMP))
    if len(parts) == 1:
        return _Encoded(parts[0][1], _types(rows, parts[0][2]))
    start, length, io_type = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.uint8)
    shift = 0
    for some, images, operation in parts:
        start[some], length[some], io_type[some] = images.start + shift, images.length, operation
        shift += len(images.buffer)
    return _Encoded(Images(np.concatenate([images.buffer for _, images, _ in parts]), start, length), io_type)


def _kept(plan: TablePlan, raw: Bytes, columns: list[RawColumn], rows: Ints, keep: Mapping[int, Flags]) -> list[Step]:
    """Convert the columns of some rows; ``keep``: the rows whose images have a column, if not all of them have it."""
    every = len(rows) == len(columns[0].place)
    steps: list[Step] = []
    for column in columns:
        flags = keep.get(column.column)
        if flags is not None and not every:
            flags = flags[rows]
        if flags is None or flags.any():
            steps.append(plan.step(raw, column if every else column.taken(rows), flags))
    return steps


def _one_by_one(table: CapturedTable, operation: IoType, rows: Sequence[Sequence[list[Value]]]) -> _Encoded:
    """Few rows, or updates with other images than the default, or of which the log does not have every column.

    ``rows``: the values of the images of each row, UNCHANGED for columns that the log does not have.
    """
    data: list[bytes] = []
    io_types: list[int] = []
    befores: list[bool] = []
    repeats = np.ones(len(rows), dtype=np.int64)
    for row, images in enumerate(rows):
        made = _made(table, operation, images)
        repeats[row] = len(made)
        for io_type, area, is_before in made:
            data.append(area)
            io_types.append(io_type)
            befores.append(is_before)
    length = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
    areas = Images(np.frombuffer(b"".join(data), dtype=np.uint8), np.cumsum(length) - length, length)
    flags = np.array(befores, dtype=bool) if any(befores) else None
    return _Encoded(areas, np.array(io_types, dtype=np.uint8), flags, repeats if flags is not None else None)


def _made(table: CapturedTable, operation: IoType, images: Sequence[list[Value]]) -> list[UpdateImage]:
    """The records of one row."""
    if operation in (IoType.INSERT, IoType.DELETE):
        (values,) = images
        whole = operation is IoType.INSERT or table.images.all_of_deletes
        wanted = range(len(values)) if whole else table.definition.identity
        return [(operation, image_of(values, sorted(wanted)), False)]
    old, new = images
    known = Before.of(table.definition, old, new, whole=UNCHANGED not in old)
    return update_images(table.definition, known, new, table.images)


def _lists(plan: TablePlan, raw: Bytes, columns: list[RawColumn], width: int) -> list[list[Value]]:
    """The values of each row, UNCHANGED for columns that the log does not have."""
    found: list[list[Value]] = [[UNCHANGED] * width for _ in range(len(columns[0].place))]
    for column in columns:
        step = plan.step(raw, column)
        rows = range(len(found)) if step.rows is None else step.rows.tolist()
        for row, value in zip(rows, step.cells.values(), strict=True):
            found[row][column.column] = value
        for row in () if step.nulls is None else step.nulls.tolist():
            found[row][column.column] = None
    return found


def _assembled(groups: list[_Rows], owners: list[tuple[MessageRun, int]], total: int) -> ChangeBatch:
    """Put the rows of all groups in the order of the log."""
    tables: dict[TableDefinition, int] = {}
    shift = 0
    starts: list[Ints] = []
    for group in groups:
        starts.append(group.encoded.images.start + shift)
        shift += len(group.encoded.images.buffer)
    order = np.concatenate([group.order for group in groups])
    numbers = np.array([tables.setdefault(group.definition, len(tables)) for group in groups], dtype=np.uint16)
    counts = [len(group.order) for group in groups]
    by_row = np.argsort(order, kind="stable")
    befores = None
    if any(group.encoded.befores is not None for group in groups):
        flags = [
            np.zeros(count, dtype=bool) if group.encoded.befores is None else group.encoded.befores
            for group, count in zip(groups, counts, strict=True)
        ]
        befores = np.concatenate(flags)[by_row]
    rows_of = np.bincount(order, minlength=total)
    return ChangeBatch(
        tables=tuple(tables),
        table=np.repeat(numbers, counts)[by_row],
        io_type=np.concatenate([group.encoded.io_type for group in groups])[by_row],
        position=np.concatenate([group.position for group in groups])[by_row],
        buffer=b"".join([group.encoded.images.buffer.data for group in groups]),
        start=np.concatenate(starts)[by_row],
        length=np.concatenate([group.encoded.images.length for group in groups])[by_row],
        rba=np.zeros(len(order), dtype=np.int64),
        pieces=_pieces(owners, np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(rows_of)))),
        befores=befores,
    )


def _pieces(owners: list[tuple[MessageRun, int]], edges: Ints) -> tuple[TransactionPiece, ...]:
    """The transactions of the rows. ``edges``: the first row of the batch for each row of the log.

    Adjacent runs of one transaction form one piece; a run without rows passes its flags on.
    """
    pieces: list[TransactionPiece] = []
    row = place = 0
    while place < len(owners):
        run, count = owners[place]
        ends, first = run.ends, row
        place += 1
        row += count
        while place < len(owners) and owners[place][0].header is run.header:
            ends = owners[place][0].ends
            row += owners[place][1]
            place += 1
        low, high = int(edges[first]), int(edges[row])
        if high > low:
            pieces.append(TransactionPiece(run.header, low, high - low, run.begins, ends))
    return tuple(pieces)
