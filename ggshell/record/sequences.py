"""Values of sequences as trail records.

A record of a sequence is a row of a batch with the operation ``IoType.SEQUENCE_OP`` and an ordinary data area. Its table
is the sequence, under the definition of ``sequence_definition``; no table has these columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import decode_image, encode_image
from ggshell.types import TableName

_BIGINT, _BOOLEAN = 20, 16
"""The type ids of PostgreSQL."""
SEQUENCE_COLUMNS: Final = (
    Column("last_value", "bigint", _BIGINT, False),
    Column("is_called", "boolean", _BOOLEAN, False),
    Column("increment_by", "bigint", _BIGINT, False),
    Column("values_ahead", "bigint", _BIGINT, False),
    Column("is_exact", "boolean", _BOOLEAN, False),
)


class SequenceValue(NamedTuple):
    """The value of a sequence at one time.

    ``called``: whether ``last`` was handed out; if not, it is the next value. ``ahead``: how many values the target is
    set ahead of it. ``exact``: the target is set to exactly this value, even if it is higher now (FLUSH SEQUENCE).
    """

    name: TableName
    last: int
    called: bool
    increment: int
    ahead: int = 0
    exact: bool = False


def sequence_definition(name: TableName) -> TableDefinition:
    """Return the definition under which the records of a sequence are stored."""
    return TableDefinition(name, SEQUENCE_COLUMNS, ())


def is_sequence(definition: TableDefinition) -> bool:
    """Whether a definition is that of a sequence."""
    return definition.columns == SEQUENCE_COLUMNS


def encode_sequence(value: SequenceValue) -> bytes:
    """Encode a value as the data area of its record."""
    fields = (value.last, _flag(value.called), value.increment, value.ahead, _flag(value.exact))
    return encode_image((index, str(field).encode()) for index, field in enumerate(fields))


def decode_sequence(name: TableName, data: bytes | memoryview) -> SequenceValue:
    """Decode the data area of a record. Raises ValueError if it is not complete."""
    found = {index: bytes(value) for index, value in decode_image(bytes(data)) if value is not None}
    if len(found) < len(SEQUENCE_COLUMNS):
        raise ValueError(f"the record of sequence {name} is not complete")
    last, increment, ahead = (int(found[index]) for index in (0, 2, 3))
    return SequenceValue(name, last, found[1] == b"t", increment, ahead, found[4] == b"t")


def _flag(value: bool) -> str:
    return "t" if value else "f"
