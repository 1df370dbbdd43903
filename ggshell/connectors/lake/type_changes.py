"""Changes of a column's type that keep all its values."""

from __future__ import annotations

import pyarrow as pa

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


def keeps_texts(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether the texts of a type are texts of another one with the same values. Those of float numbers are rounded."""
    return old == new or (is_wider(old, new) and not pa.types.is_floating(old))
