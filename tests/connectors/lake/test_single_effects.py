"""The net effect of a batch on the rows of a table equals its changes applied one after the other."""

from __future__ import annotations

import pytest
from changes import KEY, histories, valid
from hypothesis import given
from single_effects import Effects, RecordChange, Values, effects, key_text

from ggshell.errors import ApplyError
from ggshell.record.operation import IoType


def merged(rows: dict[str, Values], found: Effects) -> dict[str, Values]:
    """The rows after a batch, as the merge computes them."""
    before = {} if found.cleared else rows
    after = {key: row for key, row in before.items() if key not in found.by_key}
    for key, (base, values) in found.by_key.items():
        if values is not None:
            after[key] = {**(before.get(base, {}) if base is not None else {}), **values}
    return after


@given(first=histories, second=histories)
def test_effects_merged_into_the_previous_rows_give_the_later_rows(
    first: list[RecordChange], second: list[RecordChange]
) -> None:
    rows: dict[str, Values] = {}
    valid(rows, first)
    before = {key: dict(row) for key, row in rows.items()}
    found = effects(valid(rows, second), KEY)
    assert merged(before, found) == rows


def test_a_record_without_its_key_is_refused() -> None:
    with pytest.raises(ApplyError, match="does not contain id"):
        effects([RecordChange(IoType.FIELD_COMP, {}, {"v": "x"})], KEY)


def test_null_and_empty_keys_are_different() -> None:
    assert key_text({"id": None}, KEY) != key_text({"id": ""}, KEY)
