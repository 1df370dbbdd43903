"""COUNT of a whole file without conditions: a chunk of records at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ggshell.logdump.answers import Counted, Tally
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import decode, iotypes
from ggshell.trail.decode import Records
from ggshell.trail.look import LookedFile

CHUNK: Final = 2 << 20
_SIDES = ("After", "Before")
_TABLES = 1 << 16


class FastCount:
    """Counts rows from one place on, up to the first record that is damaged or not whole; other records are left to
    ``other``, by their places."""

    def __init__(
        self,
        file: LookedFile,
        result: Counted,
        other: Callable[[int], None],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._file = file
        self._progress = progress
        self._result = result
        self._other = other
        self._open = 0
        """Rows of the transaction that the last chunk left open."""
        self._open_tables: set[int] = set()

    def count(self, place: int) -> int:
        """Count from a place on; the place behind the last record that was counted."""
        size = CHUNK
        while place < self._file.size:
            chunk = self._file.read(size, place)
            records = decode.good_records(chunk, self._file.path, place)
            if not records.end:
                if records.fault is not None or len(chunk) < size:
                    break
                size *= 2
                continue
            self._take(records, place)
            place += records.end
            if self._progress is not None:
                self._progress(place, self._file.size)
        return place

    def end(self) -> None:
        """What is open at the end counts as a transaction too."""
        if self._open:
            self._result.transactions += 1
            self._result.transaction_tables += len(self._open_tables)
            self._open, self._open_tables = 0, set()

    def _take(self, records: Records, base: int) -> None:
        is_row = records.is_row
        for place in (records.start[~is_row] + base).tolist():
            self._other(place)
        rows = records.only(is_row)
        if not len(rows.start):
            return
        header = rows.header
        before = header["before_after"] == ord("B")
        key = (header["table"].astype(np.int64) << 9) | (header["io_type"].astype(np.int64) << 1) | before
        kinds, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        sizes = np.bincount(inverse, weights=rows.data_length).astype(np.int64)
        last = int(rows.start[-1]) + base
        for kind, number, size in zip(kinds.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            table = self._file.table(kind >> 9, last)
            name = table.name if table is not None else "*None*"
            operation, side = iotypes.io_type_name(kind >> 1 & 0xFF), _SIDES[kind & 1]
            for tally in (self._result.total, self._result.tables.setdefault(name, Tally())):
                tally.add_many(operation, number, size, side)
        self._transactions(rows, header["table"].astype(np.int64))

    def _transactions(self, rows: Records, table: NDArray[np.int64]) -> None:
        ends = rows.header["trans_ind"] >= TransInd.END
        number: NDArray[np.int64] = np.cumsum(ends) - ends
        result = self._result
        result.transaction_records += int((rows.header["io_type"] != IoType.RECORD_FRAGMENT).sum())
        result.transaction_bytes += int(rows.data_length.sum())
        whole = int(ends.sum())
        result.transactions += whole
        pairs = np.unique(number * _TABLES + table)
        first = {int(pair) for pair in (pairs[pairs < _TABLES]).tolist()} | self._open_tables
        tables = len(pairs) - int((pairs < _TABLES).sum()) + len(first)
        still_open = not bool(ends[-1])
        left = {int(pair) % _TABLES for pair in pairs[pairs >= whole * _TABLES].tolist()} if still_open else set()
        if still_open:
            left |= self._open_tables if not whole else set()
            tables -= len(left)
        result.transaction_tables += tables
        self._open_tables, self._open = left, int(still_open)
