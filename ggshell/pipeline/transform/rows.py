"""Rows of one table and one operation as columns: lists with one value per row, made on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ggshell.pipeline.transform.values import State, Value, column_number
from ggshell.record.change import Areas, ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.fields import Field, Ints, split_image, values_of, walk
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.record.ragged import copy_pieces
from ggshell.record.transaction import TransactionPiece
from ggshell.record.user_tokens import decode_user_tokens

FEW = 12
"""Up to this many rows, images are decoded one by one."""

Raw = bytes | State


class Side(Enum):
    """Which image of a row."""

    PLAIN = "the after image, where it lacks the column, and of a delete, the before image: an update did not change it"
    AFTER = "the after image"
    BEFORE = "the before image"
    EITHER = "the before image, where it lacks the column the after image"


class Images:
    """Images in a batch's buffer, decoded on demand."""

    def __init__(self, buffer: bytes | bytearray | memoryview, start: Ints, length: Ints) -> None:
        self.areas = Areas(start, length)
        self._buffer = buffer

    @cached_property
    def fields(self) -> dict[int, Field] | None:
        """The columns, decoded for all rows in lock-step. None for few rows, or if rows contain different columns."""
        start, length = self.areas
        if len(start) <= FEW:
            return None
        fields = walk(np.frombuffer(self._buffer, dtype=np.uint8), start, length)
        return {field.column: field for field in fields} if fields is not None else None

    @cached_property
    def _single(self) -> list[dict[int, bytes | None]]:
        places = zip(self.areas.start.tolist(), self.areas.length.tolist(), strict=True)
        images = (split_image(bytes(self._buffer[first : first + size])) for first, size in places)
        return [dict(zip(*image, strict=True)) for image in images]

    def joined(self, index: int) -> bytearray | None:
        """A column's values, each followed by a zero byte. None if a row has no value, or the rows are not in lock-step."""
        field = self.fields.get(index) if self.fields is not None else None
        if field is None or (field.size < 0).any():
            return None
        taken = field.size + 1
        out = bytearray(int(taken.sum()))
        copy_pieces(out, np.cumsum(taken) - taken, self._buffer, field.place, field.size)
        return out

    def column(self, index: int) -> list[Raw]:
        """A column's values."""
        if self.fields is None:
            found = [single.get(index, State.MISSING) for single in self._single]
            return [State.NULL if value is None else value for value in found]
        field = self.fields.get(index)
        if field is None:
            return [State.MISSING] * len(self.areas.start)
        values = values_of(self._buffer, field)
        return [State.NULL if value is None else value for value in values] if None in values else values  # type: ignore[return-value]


class Rows:
    """Rows ``numbers`` of a batch, all of one table and one operation.

    ``results``: the SQLEXEC results for each row, by query.
    """

    def __init__(
        self,
        batch: ChangeBatch,
        numbers: NDArray[np.int64],
        results: Mapping[str, Sequence[Mapping[str, Value]]] | None = None,
        plain: Side = Side.PLAIN,
    ) -> None:
        """``plain``: the image that a plain column name refers to, if it is not the default."""
        self.batch = batch
        self.numbers = numbers
        self.io_type = int(batch.io_type[numbers[0]]) if len(numbers) else int(IoType.INSERT)
        self.results: dict[str, Sequence[Mapping[str, Value]]] = dict(results or {})
        self._plain = plain
        self._known: dict[tuple[str, Side, int], list[Value]] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: Sequence[int]) -> Rows:
        """A subset of the rows, by their indexes among these rows."""
        chosen = {name: [values[place] for place in places] for name, values in self.results.items()}
        return Rows(self.batch, self.numbers[np.array(places, dtype=np.int64)], chosen, self._plain)

    @cached_property
    def halves(self) -> tuple[Images | None, Images | None]:
        """The before and after images; None for an image that this operation does not have."""
        batch = self.batch
        start, length = batch.start[self.numbers], batch.length[self.numbers]
        if self.io_type == IoType.DELETE or self.is_before:
            return Images(batch.buffer, start, length), None
        if self.io_type not in TWO_IMAGES:
            return None, Images(batch.buffer, start, length)
        raw = np.frombuffer(batch.buffer, dtype=np.uint8)
        size = raw[start].astype(np.int64) | raw[start + 1].astype(np.int64) << 8
        head = np.where(size == 0xFFFF, 6, 2)
        for place in np.flatnonzero(size == 0xFFFF).tolist():
            first = int(start[place]) + 2
            size[place] = int.from_bytes(raw[first : first + 4].tobytes(), "little")
        behind = start + head + size
        return Images(batch.buffer, start + head, size), Images(batch.buffer, behind, start + length - behind)

    def raw(self, side: Side, index: int) -> list[Raw]:
        """A column's bytes as stored in the images."""
        return self._cached("raw", side, index, self._raw)  # type: ignore[return-value]

    def _raw(self, side: Side, index: int) -> list[Value]:
        if self._side(side) is Side.EITHER:
            pairs = zip(self.raw(Side.BEFORE, index), self.raw(Side.AFTER, index), strict=True)
            return [later if first is State.MISSING else first for first, later in pairs]
        half = self._half(side)
        if half is None:
            return [State.MISSING] * len(self)
        found, before = half.column(index), self.halves[0]
        if self._side(side) is Side.PLAIN and half is not before and before is not None and State.MISSING in found:
            pairs = zip(found, before.column(index), strict=True)
            return [former if value is State.MISSING else value for value, former in pairs]
        return list(found)

    def _side(self, side: Side) -> Side:
        return self._plain if side is Side.PLAIN else side

    def _half(self, side: Side) -> Images | None:
        before, after = self.halves
        side = self._side(side)
        return before if side is Side.BEFORE or (side is Side.PLAIN and after is None) else after

    def texts(self, side: Side, index: int) -> list[Value]:
        """A column as texts."""
        return self._cached("text", side, index, self._texts)

    def _texts(self, side: Side, index: int) -> list[Value]:
        half = self._half(side) if self._side(side) is not Side.EITHER else None
        together = half.joined(index) if half is not None else None
        if together is not None:
            found = _texts_in(together)
            if len(found) == len(self):
                return list(found)
        return [_decoded(value) for value in self.raw(side, index)]

    def numbers_of(self, side: Side, index: int) -> list[Value]:
        """A numeric column as numbers; INVALID for a value that is not a number."""
        return self._cached("number", side, index, self._numbers)

    def _numbers(self, side: Side, index: int) -> list[Value]:
        try:
            return list(map(int, self.texts(side, index)))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return [column_number(value) if isinstance(value, str) else value for value in self.texts(side, index)]

    def octets(self, side: Side, index: int) -> list[Value]:
        """A binary column as bytes, decoded from its ``\\x…`` text."""
        return self._cached("octets", side, index, self._octets)

    def _octets(self, side: Side, index: int) -> list[Value]:
        return [value if isinstance(value, State) else _unhexed(value) for value in self.raw(side, index)]

    def _cached(self, kind: str, side: Side, index: int, make: Callable[[Side, int], list[Value]]) -> list[Value]:
        key = (kind, side, index)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(side, index)
        return found

    @property
    def table(self) -> TableDefinition:
        """The table of the rows."""
        return self.batch.tables[int(self.batch.table[self.numbers[0]])]

    @property
    def is_before(self) -> bool:
        """Whether the rows are before images of updates, stored as separate records."""
        befores = self.batch.befores
        return befores is not None and bool(befores[self.numbers[0]])

    def tokens(self, name: str) -> list[Value]:
        """The values of a user token, by its name in upper case."""
        return [tokens.get(name, State.MISSING) for tokens in self._tokens]

    @cached_property
    def _tokens(self) -> list[dict[str, Value]]:
        areas = self.batch.user_tokens
        if areas is None:
            return [{}] * len(self)
        found: list[dict[str, Value]] = []
        for first, size in zip(areas.start[self.numbers].tolist(), areas.length[self.numbers].tolist(), strict=True):
            tokens = decode_user_tokens(bytes(self.batch.buffer[first : first + size]))
            found.append({name.upper(): _decoded(value) for name, value in tokens.items()})
        return found

    @cached_property
    def pieces(self) -> list[TransactionPiece]:
        """The transaction piece that each row belongs to."""
        pieces = self.batch.pieces
        firsts = np.array([piece.first for piece in pieces], dtype=np.int64)
        return [pieces[place] for place in (np.searchsorted(firsts, self.numbers, "right") - 1).tolist()]


def _texts_in(together: bytearray) -> list[str]:
    """Decode texts that are each followed by a zero byte. Empty if they are not valid text."""
    try:
        return together.decode().split("\0")[:-1]
    except UnicodeDecodeError:
        return []


def _decoded(value: Raw) -> Value:
    if isinstance(value, State):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return State.INVALID


def _unhexed(value: bytes) -> Value:
    if not value.startswith(b"\\x"):
        return value
    try:
        return bytes.fromhex(value[2:].decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return State.INVALID
