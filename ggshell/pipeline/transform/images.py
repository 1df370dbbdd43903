"""Encodes values as the bytes of row images, one column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import State, Value, image_value
from ggshell.record.fields import Field, Ints
from ggshell.record.image import LONGEST_SHORT, encode_image
from ggshell.record.ragged import Buffer, copy_pieces, items

_TEXTS_AND_WHOLE: Final = {str, int}
HEAD: Final = 8
"""The bytes before a short value: index, length, NULL indicator, the length of the value itself."""
NULL_HEAD: Final = 6
"""The bytes of a NULL: index, length, NULL indicator."""


class ComputedImages(NamedTuple):
    """Data areas in sequence, with the length of each."""

    data: bytes
    length: Ints


class Pieces(NamedTuple):
    """One piece per row, anywhere in a buffer.

    ``heads``: 8 bytes per row that are written before the pieces (the head of a value in an image); ``column``: the new
    column index, which replaces the one at the beginning of each piece.
    """

    buffer: Buffer
    start: Ints
    length: Ints
    heads: NDArray[np.void] | None = None
    column: int | None = None

    @property
    def size(self) -> Ints:
        """The size of each row's piece with its head."""
        return self.length if self.heads is None else self.length + HEAD


class Appended:
    """A column computed by a node, encoded for an image."""

    def __init__(self, index: int, node: Node, *, binary: bool) -> None:
        self.index = index
        self.node = node
        self._binary = binary
        self._fixed = None if node.constant is None else self._one(node.constant)

    def pieces(self, rows: Rows) -> Pieces:
        """The column's bytes for each row. Empty for a row without a value to set."""
        if self._fixed is not None:
            nothing = np.zeros(len(rows), dtype=np.int64)
            return Pieces(self._fixed, nothing, nothing + len(self._fixed))
        values = self.node.evaluate(rows)
        kinds = set(map(type, values))
        if kinds <= _TEXTS_AND_WHOLE and not self._binary:
            found = self._of_texts(list(map(str, values)) if int in kinds else values)
            if found is not None:
                return found
        return pieces_of([self._one(value) for value in values])

    def _of_texts(self, values: list[Value]) -> Pieces | None:
        """The usual case: short texts without NUL characters. None if the values are different."""
        buffer = "\0".join([*values, ""]).encode()  # type: ignore[list-item]
        ends = np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == 0)
        if len(ends) != len(values):
            return None
        start = np.concatenate([[0], ends[:-1] + 1])
        length = ends - start
        if int(length.max()) > LONGEST_SHORT:
            return None
        heads = np.zeros((len(values), 4), dtype="<u2")
        heads[:, 0], heads[:, 1], heads[:, 3] = self.index, length + 4, length
        return Pieces(buffer, start, length, heads.view(f"V{HEAD}").reshape(-1))

    def _one(self, value: Value) -> bytes:
        if value is State.MISSING or value is State.INVALID:
            return b""
        return encode_image([(self.index, image_value(value, self._binary))])


def pieces_of(values: Sequence[bytes]) -> Pieces:
    """Pieces from single values, one per row."""
    length = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    return Pieces(b"".join(values), np.cumsum(length) - length, length)


def column_pieces(buffer: Buffer, field: Field, index: int) -> Pieces:
    """A column of images, to be copied to other images under another index. None of its values can be long."""
    length = np.where(field.size < 0, NULL_HEAD, field.size + HEAD)
    return Pieces(buffer, field.place - HEAD, length, column=index)


def joined(columns: Sequence[Pieces], rows: int) -> ComputedImages:
    """The pieces of each row, concatenated."""
    total = np.sum([column.size for column in columns], axis=0) if columns else np.zeros(rows, dtype=np.int64)
    place = np.cumsum(total) - total
    out = bytearray(int(total.sum()))
    for column in columns:
        first = place
        if column.heads is not None:
            items(out, HEAD)[place] = column.heads
            first = place + HEAD
        copy_pieces(out, first, column.buffer, column.start, column.length)
        if column.column is not None:
            raw = np.frombuffer(out, dtype=np.uint8)
            raw[first], raw[first + 1] = column.column & 0xFF, column.column >> 8
        place = place + column.size
    return ComputedImages(bytes(out), total)


def made_of(areas: Sequence[bytes]) -> ComputedImages:
    """Complete data areas."""
    return ComputedImages(b"".join(areas), np.fromiter(map(len, areas), dtype=np.int64, count=len(areas)))


def cut(made: ComputedImages) -> list[bytes]:
    """Split into single data areas."""
    ends = np.cumsum(made.length)
    return [made.data[first:last] for first, last in zip((ends - made.length).tolist(), ends.tolist(), strict=True)]
