"""Encodes runs of row messages as a ChangeBatch: few rows one by one, many at once. Both produce the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.connectors.postgres import pgoutput
from ggshell.connectors.postgres.protocol import HEAD
from ggshell.connectors.postgres.rows import (
    NEW_ROW,
    OLD_ROW,
    EncodedRow,
    RelationTable,
    encode_row,
    position_of,
    truncated,
)
from ggshell.connectors.postgres.vectors import big32, encode_tuples
from ggshell.errors import CaptureError
from ggshell.pipeline.capture.cache import Chunk
from ggshell.pipeline.capture.messages import Messages
from ggshell.pipeline.capture.source import MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import LONGEST_SHORT
from ggshell.record.operation import IoType
from ggshell.record.ragged import copy_pieces, items
from ggshell.record.transaction import TransactionHeader, TransactionPiece

FEW_ROWS = 24

_VECTOR_OPERATIONS = {
    pgoutput.INSERT: IoType.INSERT,
    pgoutput.UPDATE: IoType.FIELD_COMP,
    pgoutput.DELETE: IoType.DELETE,
}
_FINISHED = {pgoutput.DDL: IoType.DDL, pgoutput.SEQUENCE: IoType.SEQUENCE_OP}
_POSITION = np.arange(1, 9, dtype=np.int64)
_READY = np.dtype([("transaction", "V4"), ("relation", "<u4"), ("io_type", "u1"), ("before", "?"), ("position", "<u8")])
"""The head of a ready row. ``transaction`` comes first because ``Messages.without`` looks for it there."""


class RunRows(NamedTuple):
    """The rows of one run: arrays with one element per row, and data areas within ``buffer``.

    ``relations`` are the ids of the shapes.
    """

    relations: list[int]
    shapes: list[RelationTable]
    table: NDArray[np.uint16]
    io_type: NDArray[np.uint8]
    position: NDArray[np.uint64]
    buffer: bytes
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    before: NDArray[np.bool_] | None = None


def encode_runs(runs: Iterable[MessageRun]) -> ChangeBatch | None:
    """Encode the captured rows of some runs as one batch. None when there are none.

    Adjacent runs under the same definitions are encoded together.
    """
    parts: list[RunRows] = []
    owners: list[tuple[TransactionHeader, bool, bool, int]] = []
    group: list[MessageRun] = []
    for run in runs:
        if group and (
            run.chunk.definitions is not group[0].chunk.definitions
            or run.chunk.streamed != group[0].chunk.streamed
            or run.chunk.ready != group[0].chunk.ready
        ):
            _encode_group(group, parts, owners)
            group = []
        group.append(run)
    if group:
        _encode_group(group, parts, owners)
    return _assemble(parts, _pieces(owners))


def _encode_group(
    group: list[MessageRun], parts: list[RunRows], owners: list[tuple[TransactionHeader, bool, bool, int]]
) -> None:
    sizes = [sum(map(len, run.parts)) for run in group]
    part, counts = _rows(group[0].chunk, Messages.join([part for run in group for part in run.parts]))
    parts.append(part)
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    edges = before[np.cumsum([0, *sizes])].tolist()
    for run, first, last in zip(group, edges, edges[1:], strict=False):
        owners.append((run.header, run.begins, run.ends, last - first))


def _rows(chunk: Chunk, messages: Messages) -> tuple[RunRows, NDArray[np.int64]]:
    """The captured rows of a chunk's messages, and how many rows each message produces."""
    if chunk.ready:
        return rows_of_ready(messages, chunk.definitions), np.ones(len(messages), dtype=np.int64)
    place = pgoutput.PAYLOAD + 1 + (4 if chunk.streamed else 0)
    singly = len(messages) <= FEW_ROWS or _any_special(messages) or _any_befores(chunk.definitions)
    encode = _one_by_one if singly else _at_once
    return encode(messages, chunk.definitions, place)


def make_ready(chunk: Chunk) -> Messages:
    """Encode a chunk's messages as ready rows: each has a head (see ``_READY``) and its data area."""
    messages = Messages.join(chunk.parts)
    rows, counts = _rows(chunk, messages)
    heads = np.zeros(len(rows.start), dtype=_READY)
    if chunk.streamed:
        marks = items(messages.data, 4)[messages.edges[:-1] + chunk.id_offset]
        heads["transaction"] = np.repeat(marks, counts)
    heads["relation"] = np.array(rows.relations, dtype=np.uint32)[rows.table]
    heads["io_type"], heads["position"] = rows.io_type, rows.position
    if rows.before is not None:
        heads["before"] = rows.before
    edges = np.zeros(len(heads) + 1, dtype=np.int64)
    np.cumsum(rows.length + _READY.itemsize, out=edges[1:])
    out = bytearray(int(edges[-1]))
    items(out, _READY.itemsize)[edges[:-1]] = heads.view(f"V{_READY.itemsize}")
    copy_pieces(out, edges[:-1] + _READY.itemsize, rows.buffer, rows.start, rows.length)
    return Messages(bytes(out), edges)


def rows_of_ready(messages: Messages, shapes: Mapping[int, RelationTable]) -> RunRows:
    """Ready rows as arrays that refer to the messages' own bytes."""
    first = messages.edges[:-1]
    heads = items(messages.data, _READY.itemsize)[first].view(_READY)
    relations, table = np.unique(heads["relation"], return_inverse=True)
    known = relations.tolist()
    return RunRows(
        known,
        [_shape(shapes, relation) for relation in known],
        table.astype(np.uint16),
        heads["io_type"],
        heads["position"],
        messages.data,
        first + _READY.itemsize,
        np.diff(messages.edges) - _READY.itemsize,
        heads["before"] if heads["before"].any() else None,
    )


def _any_special(messages: Messages) -> bool:
    """Whether a message is not one row of the protocol: TRUNCATE may name several tables, other records are finished."""
    kinds = np.frombuffer(messages.data, dtype=np.uint8)[messages.edges[:-1] + HEAD + pgoutput.PAYLOAD]
    return bool(((kinds == pgoutput.TRUNCATE) | (kinds == pgoutput.DDL) | (kinds == pgoutput.SEQUENCE)).any())


def _any_befores(shapes: Mapping[int, RelationTable]) -> bool:
    """Whether a message may produce two rows."""
    return any(shape.wanted and shape.images.befores and not shape.images.unified for shape in shapes.values())


def _pieces(owners: list[tuple[TransactionHeader, bool, bool, int]]) -> list[TransactionPiece]:
    """Group rows by transaction.

    Adjacent runs of one transaction form one piece; a run without rows passes its flags on.
    """
    pieces: list[TransactionPiece] = []
    first, number = 0, 0
    while number < len(owners):
        header, begins, ends, rows = owners[number]
        number += 1
        while number < len(owners) and owners[number][0] is header:
            ends = owners[number][2]
            rows += owners[number][3]
            number += 1
        if rows:
            pieces.append(TransactionPiece(header, first, rows, begins, ends))
            first += rows
    return pieces


def _shape(shapes: Mapping[int, RelationTable], relation: int) -> RelationTable:
    try:
        return shapes[relation]
    except KeyError:
        raise CaptureError(f"received rows of relation {relation} before its definition") from None


def _one_by_one(
    messages: Messages, shapes: Mapping[int, RelationTable], place: int
) -> tuple[RunRows, NDArray[np.int64]]:
    rows: list[EncodedRow] = []
    counts = np.zeros(len(messages), dtype=np.int64)
    edges = messages.edges.tolist()
    for number, (first, last) in enumerate(pairwise(edges)):
        message = messages.data[first + HEAD : last]
        before = len(rows)
        if message[pgoutput.PAYLOAD] == pgoutput.TRUNCATE:
            for relation in truncated(message, place):
                if _shape(shapes, relation).wanted:
                    rows.append(EncodedRow(relation, IoType.PURGE_DATA, b"", position_of(message)))
        elif message[pgoutput.PAYLOAD] in _FINISHED:
            relation = int.from_bytes(message[place : place + 4], "big")
            io_type = _FINISHED[message[pgoutput.PAYLOAD]]
            rows.append(EncodedRow(relation, io_type, message[place + 4 :], position_of(message)))
        else:
            relation = int.from_bytes(message[place : place + 4], "big")
            shape = _shape(shapes, relation)
            if shape.wanted:
                rows += encode_row(message, shape, relation, place)
        counts[number] = len(rows) - before
    used = list(dict.fromkeys(row.relation for row in rows))
    length = np.array([len(row.data) for row in rows], dtype=np.int64)
    part = RunRows(
        used,
        [shapes[relation] for relation in used],
        np.array([used.index(row.relation) for row in rows], dtype=np.uint16),
        np.array([row.io_type for row in rows], dtype=np.uint8),
        np.array([row.position for row in rows], dtype=np.uint64),
        b"".join(row.data for row in rows),
        np.cumsum(length) - length,
        length,
        np.array([row.before for row in rows], dtype=bool) if any(row.before for row in rows) else None,
    )
    return part, counts


def _at_once(messages: Messages, shapes: Mapping[int, RelationTable], place: int) -> tuple[RunRows, NDArray[np.int64]]:
    raw = np.frombuffer(messages.data + b"\0" * 8, dtype=np.uint8)
    offset = messages.edges[:-1] + HEAD
    relations, inverse = np.unique(big32(raw, offset + place), return_inverse=True)
    known = [_shape(shapes, int(relation)) for relation in relations]
    wanted = np.array([shape.wanted for shape in known], dtype=bool)[inverse]
    counts = wanted.astype(np.int64)
    chosen = np.flatnonzero(wanted)
    offset, table = offset[chosen], inverse[chosen].astype(np.uint16)
    kind, form = raw[offset + pgoutput.PAYLOAD], raw[offset + place + 4]
    images = [shape.images for shape in known]
    whole = np.array([rules.whole_updates and not rules.unified for rules in images], dtype=bool)[table]
    keep = _kept(kind, form, table, known)
    encoded = encode_tuples(raw, offset + place + 5, keep, LONGEST_SHORT, ask_lacking=bool(whole.any()))
    length, start = encoded.length, encoded.start
    io_type = np.zeros(len(chosen), dtype=np.uint8)
    for operation, code in _VECTOR_OPERATIONS.items():
        io_type[kind == operation] = code
    if encoded.lacking is not None:
        io_type[(kind == pgoutput.UPDATE) & whole & ~encoded.lacking] = IoType.UPDATE
    unified = np.array([rules.unified is not None for rules in images], dtype=bool)[table]
    single = np.flatnonzero((length < 0) | ((kind == pgoutput.UPDATE) & ((form != NEW_ROW) | unified)))
    extra: list[bytes] = []
    size = len(encoded.buffer)
    for row in single.tolist():
        message = messages[int(chosen[row])][HEAD:]
        (one,) = encode_row(message, known[int(table[row])], int(relations[table[row]]), place)
        io_type[row], start[row], length[row] = one.io_type, size, len(one.data)
        size += len(one.data)
        extra.append(one.data)
    position = raw[offset[:, None] + _POSITION].view(">u8").ravel().astype(np.uint64)
    return RunRows(
        relations.tolist(), known, table, io_type, position, b"".join([encoded.buffer.tobytes(), *extra]), start, length
    ), counts


def _kept(
    kind: NDArray[np.uint8], form: NDArray[np.uint8], table: NDArray[np.uint16], known: list[RelationTable]
) -> NDArray[np.bool_] | None:
    """Which columns are in the images: all, but for deleted rows usually only the identifying columns."""
    whole = np.array([shape.images.all_of_deletes for shape in known], dtype=bool)[table] & (form == OLD_ROW)
    deleted = (kind == pgoutput.DELETE) & ~whole
    if not deleted.any():
        return None
    widest = max(len(shape.definition.columns) for shape in known)
    identity = np.zeros((len(known), widest), dtype=bool)
    for number, shape in enumerate(known):
        identity[number, list(shape.definition.identity)] = True
    keep = np.ones((len(kind), widest), dtype=bool)
    keep[deleted] = identity[table[deleted]]
    return keep


def _assemble(parts: list[RunRows], pieces: list[TransactionPiece]) -> ChangeBatch | None:
    parts = [part for part in parts if len(part.start)]
    if not parts:
        return None
    tables: dict[TableDefinition, int] = {}
    numbers, starts, size = [], [], 0
    for part in parts:
        mapped = [tables.setdefault(shape.definition, len(tables)) for shape in part.shapes]
        numbers.append(np.array(mapped, dtype=np.uint16)[part.table])
        starts.append(part.start + size)
        size += len(part.buffer)
    length = np.concatenate([part.length for part in parts])
    return ChangeBatch(
        tables=tuple(tables),
        table=np.concatenate(numbers),
        io_type=np.concatenate([part.io_type for part in parts]),
        position=np.concatenate([part.position for part in parts]),
        buffer=b"".join(part.buffer for part in parts) if len(parts) > 1 else parts[0].buffer,
        start=np.concatenate(starts),
        length=length,
        rba=np.zeros(len(length), dtype=np.int64),
        pieces=tuple(pieces),
        befores=_befores(parts),
    )


def _befores(parts: list[RunRows]) -> NDArray[np.bool_] | None:
    if all(part.before is None for part in parts):
        return None
    return np.concatenate(
        [np.zeros(len(part.start), dtype=bool) if part.before is None else part.before for part in parts]
    )
