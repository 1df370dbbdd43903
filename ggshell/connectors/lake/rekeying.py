"""New texts of the key for all rows of a current table, when the key of the table has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.extra_columns import DELETED
from ggshell.connectors.lake.forms import KEY
from ggshell.connectors.lake.table_keys import KeyColumn, joined_key, unknown_texts
from ggshell.errors import ApplyError
from ggshell.query.values import texts
from ggshell.types import TableName

UNIDENTIFIED: Final = "GGS-00736"
DELIVER_AGAIN: Final = (
    "exclude the table with MAPEXCLUDE, and deliver it to a new lake with a separate group after an initial load"
)


def rekeyed(
    rows: pa.Table, name: TableName, former: Sequence[KeyColumn], key: Sequence[KeyColumn], stored_as: Mapping[str, str]
) -> pa.Table:
    """Rows with the texts of another key. Deleted rows whose text another row has keep theirs.

    ``stored_as``: the names of columns that have another one in the lake. Raises ApplyError if the values of a row do not
    identify it, or if they do not tell the texts that the source has for a new type.
    """
    for old, new in unknown_texts(former, key) if rows.num_rows else ():
        raise _changed_type(name, old, new)
    columns = [stored_as.get(each.name, each.name) for each in key]
    arrays = [rows[column].combine_chunks() for column in columns]
    kinds = [each.type for each in arrays]
    deleted = rows[DELETED].combine_chunks().fill_null(False) if DELETED in rows.column_names else None
    gone = np.zeros(rows.num_rows, np.bool_) if deleted is None else deleted.to_numpy(zero_copy_only=False)
    known = np.all([each.is_valid().to_numpy(zero_copy_only=False) for each in arrays], axis=0)
    made = joined_key([_text(each) for each in arrays])
    live = made.filter(pa.array(~gone))
    if any(pa.types.is_floating(kind) for kind in kinds) or not known[~gone].all() or len(live.unique()) < len(live):
        raise _changed_key(name, [each.name for each in key])
    kept = gone & (~known | pc.is_in(made, live).to_numpy(zero_copy_only=False))
    text = pc.if_else(pa.array(kept), rows[KEY].combine_chunks(), made)
    return rows.set_column(rows.column_names.index(KEY), KEY, text)


def _text(column: pa.Array) -> pa.Array:
    """Values as the source writes them, which omits zeros at the end of a time's fraction."""
    found = texts(column)
    return pc.replace_substring_regex(found, r"\.?0*(\+00)?$", r"\1") if pa.types.is_timestamp(column.type) else found


def _changed_key(name: TableName, columns: Sequence[str]) -> ApplyError:
    return ApplyError(
        f"the key of {name} has changed to {', '.join(columns)}, and these columns do not identify the rows in the lake",
        code=UNIDENTIFIED,
        hint=DELIVER_AGAIN,
    )


def _changed_type(name: TableName, old: KeyColumn, new: KeyColumn) -> ApplyError:
    return ApplyError(
        f"column {new.name} of the key of {name} has changed from {old.type_name} to {new.type_name}, and the values in the"
        " lake do not tell its new ones",
        code=UNIDENTIFIED,
        hint=DELIVER_AGAIN,
    )


def lost_key(name: TableName) -> ApplyError:
    """The error for a table that has lost its key, although the lake has its current rows."""
    return ApplyError(
        f"{name} no longer has a key, so its changes do not identify its rows in the lake",
        code=UNIDENTIFIED,
        hint=DELIVER_AGAIN,
    )
