"""Values to the bytes of row images, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.columns.nodes import Node
from ggshell.columns.rows import Rows
from ggshell.columns.values import State, Value, image_value
from ggshell.record.fields import Field, Ints
from ggshell.record.image import LONGEST_SHORT, encode_image
from ggshell.record.ragged import Buffer, copy_pieces, items

_TEXTS_AND_WHOLE: Final = {str, int}
HEAD: Final = 8
"""Bytes before a value that is not long: index, length, NULL indicator, the value's own length."""
NULL_HEAD: Final = 6
"""What stands for NULL: index, length, NULL indicator."""


class Made(NamedTuple):
    """Data areas, one behind the other, and how long each is."""

    data: bytes
    length: Ints


class Pieces(NamedTuple):
    """A piece a row, anywhere in a buffer; ``heads``: 8 bytes a row that stand before them (a value's, in an image);
    ``column``: what takes the place of the column's index, with which each piece begins."""

    buffer: Buffer
    start: Ints
    length: Ints
    heads: NDArray[np.void] | None = None
    column: int | None = None

    @property
    def size(self) -> Ints:
        """What a row's piece takes with its head."""
        return self.length if self.heads is None else self.length + HEAD


class Appended:
    """A column that a node computes, as the bytes that stand for it in an image."""

    def __init__(self, index: int, node: Node, *, binary: bool) -> None:
        self.index = index
        self.node = node
        self._binary = binary
        self._fixed = None if node.constant is None else self._one(node.constant)

    def pieces(self, rows: Rows) -> Pieces:
        """The column's bytes of each row; none where it has no value to set."""
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
        """The usual case: no NUL in the texts, none of them long.  None where it is not so."""
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
    """A piece a row, from single ones."""
    length = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    return Pieces(b"".join(values), np.cumsum(length) - length, length)


def column_pieces(buffer: Buffer, field: Field, index: int) -> Pieces:
    """A column of images, as it will stand in others with another index; none of its values is long."""
    length = np.where(field.size < 0, NULL_HEAD, field.size + HEAD)
    return Pieces(buffer, field.place - HEAD, length, column=index)


def joined(columns: Sequence[Pieces], rows: int) -> Made:
    """The pieces of each row, one behind the other."""
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
    return Made(bytes(out), total)


def made_of(areas: Sequence[bytes]) -> Made:
    """Data areas that are whole."""
    return Made(b"".join(areas), np.fromiter(map(len, areas), dtype=np.int64, count=len(areas)))


def cut(made: Made) -> list[bytes]:
    """Data areas, one by one."""
    ends = np.cumsum(made.length)
    return [made.data[first:last] for first, last in zip((ends - made.length).tolist(), ends.tolist(), strict=True)]
