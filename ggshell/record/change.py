"""Batches of changes: one type for the whole path, Extract -> trail writer -> trail reader -> pump -> Replicat.

A ``ChangeBatch`` is columnar: one byte buffer and numpy arrays with one element per row, so no stage builds an object per
row or per column. The *data area* of a row has the trail's format (``ggshell.record.image``), so a batch that was read
from a trail refers directly to the bytes of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.definition import TableDefinition
from ggshell.record.image import split_key_update
from ggshell.record.operation import TWO_IMAGES
from ggshell.record.transaction import TransactionPiece


class Areas(NamedTuple):
    """One area of a batch's buffer per row: ``buffer[start:start+length]``; int64 arrays."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]


@cache
def _lookup(io_types: frozenset[int]) -> NDArray[np.bool_]:
    """Whether each number of an operation type is one of some."""
    found = np.zeros(256, dtype=np.bool_)
    found[list(io_types)] = True
    return found


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of committed transactions in commit order; transactions are never interleaved.

    Arrays have one element per row: ``table`` (uint16, index into ``tables``), ``io_type`` (uint8), ``position`` (uint64,
    the change's place in the source's log: AuditPos), ``start`` and ``length`` (int64: the data area
    ``buffer[start:start+length]``), ``rba`` (int64: the record's place in its trail file; zeros before a trail is written).
    ``pieces`` cover all rows, in order. A batch read from a trail never spans files: ``seqno`` is the file's number and
    ``end_rba`` the place after the last record, where reading continues.

    ``befores`` (bool) marks rows that are not changes but the before image of the following update (GETUPDATEBEFORES);
    None if there are none. ``user_tokens`` are in the buffer too (``ggshell.record.user_tokens``), with a length of 0 for
    rows without tokens; None if no row has any.
    """

    tables: tuple[TableDefinition, ...]
    table: NDArray[np.uint16]
    io_type: NDArray[np.uint8]
    position: NDArray[np.uint64]
    buffer: bytes | bytearray | memoryview
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    rba: NDArray[np.int64]
    pieces: Sequence[TransactionPiece]
    seqno: int = 0
    end_rba: int = 0
    befores: NDArray[np.bool_] | None = None
    user_tokens: Areas | None = None

    def __len__(self) -> int:
        return len(self.start)

    def of_types(self, io_types: frozenset[int]) -> NDArray[np.bool_]:
        """Return which rows have one of some operation types, in a twentieth of the time of ``np.isin``."""
        return _lookup(io_types)[self.io_type]

    def size(self, first: int, last: int) -> int:
        """Return the length in bytes of the data areas of rows ``first`` to ``last - 1``."""
        return int(self.length[first]) if last - first == 1 else int(self.length[first:last].sum())

    def data(self, row: int) -> bytes:
        """Return a row's data area."""
        first = int(self.start[row])
        return bytes(self.buffer[first : first + int(self.length[row])])

    def images(self, row: int) -> tuple[bytes, bytes]:
        """Return the before and after images in a row's data area; a single image is returned as the second.

        Raises ValueError if the first image extends past the data area."""
        data = self.data(row)
        if int(self.io_type[row]) not in TWO_IMAGES:
            return b"", data
        before, after = split_key_update(data)
        return bytes(before), bytes(after)

    def take(self, rows: NDArray[np.int64] | slice, pieces: Sequence[TransactionPiece]) -> ChangeBatch:
        """Return a batch with some of the rows, over the same buffer."""
        arrays = {
            name: getattr(self, name)[rows] for name in ("table", "io_type", "position", "start", "length", "rba")
        }
        tokens = self.user_tokens
        return replace(
            self,
            pieces=pieces,
            befores=None if self.befores is None else self.befores[rows],
            user_tokens=None if tokens is None else Areas(tokens.start[rows], tokens.length[rows]),
            **arrays,
        )

    def until_piece(self, number: int) -> ChangeBatch:
        """Return the batch before a piece that is not the first one; ``end_rba`` is the place of that piece."""
        first = self.pieces[number].first
        return replace(self.take(slice(0, first), self.pieces[:number]), end_rba=int(self.rba[first]))

    def from_piece(self, number: int) -> ChangeBatch:
        """Return the batch from a piece on."""
        first = self.pieces[number].first
        return self.take(slice(first, None), [replace(each, first=each.first - first) for each in self.pieces[number:]])

    def one(self, row: int, io_type: int, data: bytes) -> ChangeBatch:
        """Return a batch with one operation on a row's table, at the row's place in the trail."""
        piece = next(piece for piece in self.pieces if piece.first <= row < piece.first + piece.count)
        return ChangeBatch(
            tables=self.tables,
            table=self.table[row : row + 1],
            io_type=np.array([io_type], dtype=np.uint8),
            position=self.position[row : row + 1],
            buffer=data,
            start=np.zeros(1, dtype=np.int64),
            length=np.array([len(data)], dtype=np.int64),
            rba=self.rba[row : row + 1],
            pieces=(TransactionPiece(piece.header, 0, 1, piece.begins, piece.ends),),
            seqno=self.seqno,
            end_rba=self.end_rba,
        )
