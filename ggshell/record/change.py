"""Changes in bulk.  One type flows the whole way: Extract -> trail writer -> trail reader -> pump -> Replicat.

A ``ChangeBatch`` is columnar: one buffer of bytes and numpy arrays with one element a row, so that no stage builds an
object per row or per column.  The *data area* of a row is the trail's own (``ggshell.record.image``), so a batch that was
read from a trail points straight into the bytes of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.record.definition import TableDefinition
from ggshell.types import Csn


class TransactionHeader(NamedTuple):
    """What is known of a committed transaction.

    ``commit_time`` is in microseconds since 1970 UTC; ``restart`` is where the source's log must be read from to rebuild
    this and every later transaction (LOGBSN), 0 when the source does not say.
    """

    xid: str
    csn: Csn
    commit_time: int
    restart: int = 0


@dataclass(frozen=True, slots=True)
class TransactionPiece:
    """A run of rows of one transaction within a batch: rows ``first`` to ``first + count - 1``.

    A transaction too large for one batch comes in several pieces; only the first ``begins``, only the last ``ends``.
    A piece never has a count of 0.
    """

    header: TransactionHeader
    first: int
    count: int
    begins: bool
    ends: bool


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of committed transactions, in commit order, transactions never interleaved.

    Arrays have one element a row: ``table`` (uint16, index into ``tables``), ``io_type`` (uint8), ``position`` (uint64,
    the change's place in the source's log: AuditPos), ``start`` and ``length`` (int64: the data area
    ``buffer[start:start+length]``), ``rba`` (int64: the record's place in its trail file; zeros before a trail is written).
    ``pieces`` cover all rows, in order.  A batch read from a trail lies within one file: ``seqno`` is its number and
    ``end_rba`` the place after its last record, where reading goes on.
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

    def __len__(self) -> int:
        return len(self.start)
