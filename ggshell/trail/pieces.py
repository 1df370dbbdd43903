"""The transactions of rows that were read from a trail: their tokens are decoded on demand.

A process that copies a trail needs the first and the last transaction of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ggshell.record.transaction import TransactionHeader, TransactionPiece

Decoder = Callable[[NDArray[np.int64]], list[TransactionHeader]]
"""Returns the transactions that begin at these rows. Raises TrailError."""


class TrailPieces(Sequence[TransactionPiece]):
    """The pieces of a batch. Every access may raise TrailError for a transaction whose tokens do not identify it."""

    def __init__(
        self,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        continued: TransactionHeader | None,
        *,
        ends: bool,
        decode: Decoder,
    ) -> None:
        """``first`` and ``last``: the rows of each piece. ``continued``: the transaction that the first piece continues, None
        if it begins one; ``ends``: whether the last piece ends its transaction, as all others do."""
        self._first, self._last = first, last
        self._continued = continued
        self._ends = ends
        self._decode = decode
        self._known: dict[int, TransactionPiece] = {}
        self._all: tuple[TransactionPiece, ...] | None = None

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[TransactionPiece]:
        return iter(self._whole())

    @overload
    def __getitem__(self, index: int) -> TransactionPiece: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[TransactionPiece, ...]: ...

    def __getitem__(self, index: int | slice) -> TransactionPiece | tuple[TransactionPiece, ...]:
        if isinstance(index, slice) or self._all is not None:
            return self._whole()[index]
        number = range(len(self._first))[index]
        piece = self._known.get(number)
        if piece is None:
            piece = self._known[number] = self._some(slice(number, number + 1))[0]
        return piece

    def _whole(self) -> tuple[TransactionPiece, ...]:
        if self._all is None:
            self._all = self._some(slice(0, len(self._first)))
        return self._all

    def _some(self, numbers: slice) -> tuple[TransactionPiece, ...]:
        first, last = self._first[numbers], self._last[numbers]
        continues = self._continued is not None and numbers.start == 0
        headers = self._decode(first[1:] if continues else first)
        if self._continued is not None and continues:
            headers.insert(0, self._continued)
        newest = len(self._first) - 1
        rows = zip(headers, first.tolist(), last.tolist(), range(numbers.start, numbers.stop), strict=True)
        return tuple(
            [
                TransactionPiece(header, row, end - row + 1, number > 0 or not continues, number < newest or self._ends)
                for header, row, end, number in rows
            ]
        )
