"""Changes in bulk.  One type flows the whole way: Extract -> trail writer -> trail reader -> pump -> Replicat.

A ``ChangeBatch`` is columnar: one buffer of bytes and numpy arrays with one element a row, so that no stage builds an
object per row or per column.  The *data area* of a row is the trail's own (``ggshell.record.image``), so a batch that was
read from a trail points straight into the bytes of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.definition import TableDefinition
from ggshell.record.image import split_key_update
from ggshell.record.operation import TWO_IMAGES
from ggshell.record.transaction import TransactionPiece


class Areas(NamedTuple):
    """One stretch of a batch's buffer a row: ``buffer[start:start+length]``; int64 arrays."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of committed transactions, in commit order, transactions never interleaved.

    Arrays have one element a row: ``table`` (uint16, index into ``tables``), ``io_type`` (uint8), ``position`` (uint64,
    the change's place in the source's log: AuditPos), ``start`` and ``length`` (int64: the data area
    ``buffer[start:start+length]``), ``rba`` (int64: the record's place in its trail file; zeros before a trail is written).
    ``pieces`` cover all rows, in order.  A batch read from a trail lies within one file: ``seqno`` is its number and
    ``end_rba`` the place after its last record, where reading goes on.

    ``befores`` (bool) marks rows that are no change but the image before the update that follows (GETUPDATEBEFORES), None
    when there is none.  ``user_tokens`` lies in the buffer too (``ggshell.record.user_tokens``), with a length of 0 for rows
    without; None when no row has any.
    """

    tables: tuple[TableDefinition, ...]
    table: NDArray[np.uint16]
    io_type: NDArray[np.uint8]
    position: NDArray[np.uint64]
    buffer: bytes | bytearray | memoryview
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    rba: NDArray[np.int64]
    pieces: tuple[TransactionPiece, ...]
    seqno: int = 0
    end_rba: int = 0
    befores: NDArray[np.bool_] | None = None
    user_tokens: Areas | None = None

    def __len__(self) -> int:
        return len(self.start)

    def data(self, row: int) -> bytes:
        """A row's data area."""
        first = int(self.start[row])
        return bytes(self.buffer[first : first + int(self.length[row])])

    def images(self, row: int) -> tuple[bytes, bytes]:
        """What a row's data area holds of the time before and after its change; one image alone stands as the second.

        Raises ValueError where the first one's length leads outside."""
        data = self.data(row)
        if int(self.io_type[row]) not in TWO_IMAGES:
            return b"", data
        before, after = split_key_update(data)
        return bytes(before), bytes(after)

    def take(self, rows: NDArray[np.int64] | slice, pieces: tuple[TransactionPiece, ...]) -> ChangeBatch:
        """Some of the rows, over the same buffer."""
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
