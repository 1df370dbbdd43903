"""The key of a table, and the text that identifies each of its rows in the lake."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.type_changes import keeps_texts
from ggshell.query.values import arrow_type
from ggshell.record.definition import TableDefinition, is_same_column

_SEPARATOR, _NULL, _ESCAPE = "\x01", "\x02", "\x03"
_ESCAPED = {_ESCAPE: f"{_ESCAPE}c", _SEPARATOR: f"{_ESCAPE}a", _NULL: f"{_ESCAPE}b"}
"""Characters of values that have a meaning in the text of a key, in the order in which they are replaced."""


_TEXT = re.compile(r"(tiny|medium|long)?text|(character varying|varchar)(\(\d+\))?|citext|name|uuid|numeric|decimal")
"""Types whose values have the same text in one another, if they can be converted."""
_ROUNDING = re.compile(r"(time|interval|datetime).*\(\d\)")


class KeyColumn(NamedTuple):
    """A column of a key: its name at the source, its number there (``Column.number``), and its type.

    Earlier versions did not record the type: it is then empty.
    """

    name: str
    number: int = 0
    type_name: str = ""


def key_columns(definition: TableDefinition) -> tuple[KeyColumn, ...]:
    """The columns of a table's key; none if it has no key."""
    columns = definition.columns
    return tuple(KeyColumn(each.name, each.number, each.type_name) for each in (columns[at] for at in definition.key))


def is_same_key(former: Sequence[KeyColumn], key: Sequence[KeyColumn]) -> bool:
    """Whether a later key has the same columns, in which a value still has the same text."""
    return (
        len(former) == len(key)
        and all(map(is_same_column, former, key))
        and all(_keeps_text(old.type_name, new.type_name) for old, new in zip(former, key, strict=True))
    )


def unknown_texts(former: Sequence[KeyColumn], key: Sequence[KeyColumn]) -> list[tuple[KeyColumn, KeyColumn]]:
    """The columns of a key, before and after, whose new texts the values in the lake do not tell."""
    pairs = [(old, new) for new in key for old in former if is_same_column(old, new)]
    return [(old, new) for old, new in pairs if not _tells_text(old.type_name, new.type_name)]


def _keeps_text(old: str, new: str) -> bool:
    """Whether the values of a type have the same text in another one."""
    if old == new or not old or not new:
        return True
    before, after = arrow_type(old), arrow_type(new)
    if before == after and (_ROUNDING.match(new) or (before == pa.string() and not _is_text(old, new))):
        return False
    return keeps_texts(before, after)


def _tells_text(old: str, new: str) -> bool:
    """Whether a value that is converted to the new type has the text that the source has after ALTER COLUMN … TYPE."""
    if _keeps_text(old, new):
        return True
    before, after = arrow_type(old), arrow_type(new)
    if before == pa.date32():
        return after == pa.timestamp("us") and not _ROUNDING.match(new)
    numbers = [_is_number(before), _is_number(after)]
    return all(numbers) or (any(numbers) and bool(_TEXT.fullmatch(new if numbers[0] else old)))


def _is_text(old: str, new: str) -> bool:
    return bool(_TEXT.fullmatch(old) and _TEXT.fullmatch(new))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


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
