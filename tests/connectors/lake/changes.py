"""Random histories of a small table, reduced to the changes that a table with a key accepts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from single_effects import RecordChange, Values, key_text

from ggshell.connectors.lake.net_effects import Changes, ColumnTexts
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import TWO_IMAGES, IoType

KEY = ("id",)
ids = st.integers(1, 4).map(str)
inserts = st.builds(
    lambda key, v: RecordChange(IoType.INSERT, {}, {"id": key, "v": v, "w": "w"}), ids, st.sampled_from("abc")
)
updates = st.builds(
    lambda key, v: RecordChange(IoType.FIELD_COMP, {}, {"id": key, "v": v}), ids, st.sampled_from("xyz")
)
deletes = st.builds(lambda key: RecordChange(IoType.DELETE, {}, {"id": key}), ids)
moves = st.builds(lambda old, new: RecordChange(IoType.KEY_FIELD_COMP, {"id": old}, {"id": new}), ids, ids)
truncates = st.just(RecordChange(IoType.PURGE_DATA, {}, {}))
histories = st.lists(inserts | updates | deletes | moves | truncates, max_size=20)


def valid(rows: dict[str, Values], changes: list[RecordChange]) -> list[RecordChange]:
    """The changes that a table with a key accepts, applied to ``rows``."""
    kept = []
    for change in changes:
        key, old = change.columns.get("id") or "", change.before.get("id") or ""
        if change.io_type == IoType.PURGE_DATA:
            rows.clear()
        elif change.io_type == IoType.INSERT and key not in rows:
            rows[key] = dict(change.columns)
        elif change.io_type == IoType.FIELD_COMP and key in rows:
            rows[key] |= change.columns
        elif change.io_type == IoType.DELETE and key in rows:
            del rows[key]
        elif change.io_type == IoType.KEY_FIELD_COMP and old in rows and (key == old or key not in rows):
            rows[key] = {**rows.pop(old), **change.columns}
        else:
            continue
        kept.append(change)
    return kept


def arrays(table: TableDefinition, changes: list[RecordChange]) -> Changes:
    """The changes as a slice of a trail gives them."""
    key = [table.columns[index].name for index in table.key]
    truncate = [each.io_type == IoType.PURGE_DATA for each in changes]
    new = ["" if gone else key_text(each.columns, key) for each, gone in zip(changes, truncate, strict=True)]
    old = [
        key_text(each.before, key) if each.io_type in TWO_IMAGES else text
        for each, text in zip(changes, new, strict=True)
    ]
    columns = [
        ColumnTexts(
            column,
            pa.array([each.columns.get(column.name) for each in changes], pa.string()),
            np.array([column.name in each.columns for each in changes], np.bool_),
        )
        for column in table.columns
    ]
    kinds = np.array([each.io_type for each in changes], np.uint8)
    return Changes(table, kinds, pa.array(old, pa.string()), pa.array(new, pa.string()), tuple(columns))
