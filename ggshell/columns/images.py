"""Values to the bytes of row images, a column at a time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ggshell.columns.nodes import Node
from ggshell.columns.rows import Rows
from ggshell.columns.values import State, Value, image_value
from ggshell.record.image import LONGEST_SHORT, encode_image

_HEADED: Final = 256
"""Values shorter than this take their heads from a list."""
_SHORT = struct.Struct("<HHHH")


class Appended:
    """A column that a node computes, as the bytes that stand for it in an image."""

    def __init__(self, index: int, node: Node, *, binary: bool) -> None:
        self.index = index
        self.node = node
        self._binary = binary
        self._heads = [_SHORT.pack(index, size + 4, 0, size) for size in range(_HEADED)]
        self._fixed = None if node.constant is None else self._one(node.constant)

    def parts(self, rows: Rows) -> list[bytes]:
        """The column's bytes of each row; empty where it has no value to set."""
        if self._fixed is not None:
            return [self._fixed] * len(rows)
        values = self.node.evaluate(rows)
        if not self._binary:
            try:
                return self._of_texts(values)
            except (AttributeError, TypeError):
                return [self._one(value) for value in values]
        return [self._one(value) for value in values]

    def _of_texts(self, values: Sequence[Value]) -> list[bytes]:
        """The usual case.  Raises AttributeError or TypeError where one is no text."""
        heads = self._heads
        raw = list(map(str.encode, values))  # type: ignore[arg-type]
        return [heads[size] + each if (size := len(each)) < _HEADED else self._long(each) for each in raw]

    def _one(self, value: Value) -> bytes:
        if value is State.MISSING or value is State.INVALID:
            return b""
        return encode_image([(self.index, image_value(value, self._binary))])

    def _long(self, raw: bytes) -> bytes:
        if len(raw) <= LONGEST_SHORT:
            return _SHORT.pack(self.index, len(raw) + 4, 0, len(raw)) + raw
        return encode_image([(self.index, raw)])
