"""What a batch does to a table's rows, all in all, is what its changes do one after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.errors import ApplyError
from ggshell.lake.effects import Change, Effects, Values, effects, key_text
from ggshell.record import IoType

KEY = ("id",)
ids = st.integers(1, 4).map(str)
inserts = st.builds(
    lambda key, v: Change(IoType.INSERT, {}, {"id": key, "v": v, "w": "w"}), ids, st.sampled_from("abc")
)
updates = st.builds(lambda key, v: Change(IoType.FIELD_COMP, {}, {"id": key, "v": v}), ids, st.sampled_from("xyz"))
deletes = st.builds(lambda key: Change(IoType.DELETE, {}, {"id": key}), ids)
moves = st.builds(lambda old, new: Change(IoType.KEY_FIELD_COMP, {"id": old}, {"id": new}), ids, ids)
truncates = st.just(Change(IoType.PURGE_DATA, {}, {}))
histories = st.lists(inserts | updates | deletes | moves | truncates, max_size=20)


def valid(rows: dict[str, Values], changes: list[Change]) -> list[Change]:
    """The changes that a table with a key would let through, applied to ``rows``."""
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


def laid_over(rows: dict[str, Values], found: Effects) -> dict[str, Values]:
    """The rows after a batch, as the merge has it."""
    before = {} if found.cleared else rows
    after = {key: row for key, row in before.items() if key not in found.by_key}
    for key, (base, values) in found.by_key.items():
        if values is not None:
            after[key] = {**(before.get(base, {}) if base is not None else {}), **values}
    return after


@given(first=histories, second=histories)
def test_effects_laid_over_the_rows_before_give_the_rows_after(first: list[Change], second: list[Change]) -> None:
    rows: dict[str, Values] = {}
    valid(rows, first)
    before = {key: dict(row) for key, row in rows.items()}
    found = effects(valid(rows, second), KEY)
    assert laid_over(before, found) == rows


def test_a_record_without_its_key_is_refused() -> None:
    with pytest.raises(ApplyError, match="lacks id"):
        effects([Change(IoType.FIELD_COMP, {}, {"v": "x"})], KEY)


def test_null_and_empty_keys_are_different_keys() -> None:
    assert key_text({"id": None}, KEY) != key_text({"id": ""}, KEY)
