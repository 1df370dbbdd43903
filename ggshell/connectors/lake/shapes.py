"""When the changes before and after a change of a table's columns can be reduced together.

They can if every column stays, under any name, and its texts keep their meaning. Otherwise the values from before would be
taken for values of the new type, or be lost with a dropped column, which stays in the lake.
"""

from __future__ import annotations

import pyarrow as pa

from ggshell.query.values import arrow_type
from ggshell.record.definition import Column, TableDefinition, is_same_column

_WIDER = {
    (pa.int16(), pa.int32()),
    (pa.int16(), pa.int64()),
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
}


def is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a type holds all values of another one, in the same kind of number: what formats can promote."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(new.scale == old.scale and new.precision >= old.precision)
    return (old, new) in _WIDER


def continues(first: TableDefinition, second: TableDefinition) -> bool:
    """Whether changes under the second definition can be reduced together with those under the first."""
    if first.columns == second.columns or not first.columns or not second.columns:
        return True
    return all(
        any(is_same_column(old, new) and _keeps_texts(old, new) for new in second.columns) for old in first.columns
    )


def _keeps_texts(old: Column, new: Column) -> bool:
    """Whether the texts of the old type are texts of the new one with the same values. Those of float numbers are rounded."""
    if old.type_name == new.type_name:
        return True
    before, after = arrow_type(old.type_name), arrow_type(new.type_name)
    return before == after or (is_wider(before, after) and not pa.types.is_floating(before))
