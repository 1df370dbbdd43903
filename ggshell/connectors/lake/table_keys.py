"""The key of a table, and the text that identifies each of its rows in the lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.record.definition import TableDefinition, is_same_column

_SEPARATOR, _NULL, _ESCAPE = "\x01", "\x02", "\x03"
_ESCAPED = {_ESCAPE: f"{_ESCAPE}c", _SEPARATOR: f"{_ESCAPE}a", _NULL: f"{_ESCAPE}b"}
"""Characters of values that have a meaning in the text of a key, in the order in which they are replaced."""


class KeyColumn(NamedTuple):
    """A column of a key: its name at the source, and its number there (``Column.number``)."""

    name: str
    number: int = 0


def key_columns(definition: TableDefinition) -> tuple[KeyColumn, ...]:
    """The columns of a table's key; none if it has no key."""
    columns = definition.columns
    return tuple(KeyColumn(columns[index].name, columns[index].number) for index in definition.key)


def is_same_key(first: Sequence[KeyColumn], second: Sequence[KeyColumn]) -> bool:
    """Whether two keys have the same columns."""
    return len(first) == len(second) and all(map(is_same_column, first, second))


def joined_key(columns: Sequence[pa.Array]) -> pa.Array:
    """The keys of rows from the texts of their columns. NULL and an empty text are different keys."""
    plain = [_escaped(each).fill_null(_NULL) for each in columns]
    return plain[0] if len(plain) == 1 else pc.binary_join_element_wise(*plain, _SEPARATOR)


def _escaped(texts: pa.Array) -> pa.Array:
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    if bool(((data > 0) & (data < 4)).any()):  # hardly ever
        for character, escaped in _ESCAPED.items():
            texts = pc.replace_substring(texts, character, escaped)
    return texts
