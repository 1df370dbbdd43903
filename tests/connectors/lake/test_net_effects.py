"""Net effects computed with array operations equal those of one change after the other, also in slices that are composed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from changes import KEY, arrays, histories, valid
from hypothesis import given
from hypothesis import strategies as st
from single_effects import Effect, Effects, RecordChange, effects

from ggshell.connectors.lake.net_effects import NetEffects, composed, net_effects
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

TABLE = TableDefinition(TableName("hr", "things"), tuple(Column(name, "text") for name in ("id", "v", "w")), (0,))


def as_effects(net: NetEffects) -> Effects:
    found = {}
    for row, key in enumerate(net.key.to_pylist()):
        values = {each.column.name: each.texts[row].as_py() for each in net.columns if each.given[row]}
        found[key] = Effect(net.base[row].as_py(), None if net.gone[row] else values)
        assert values == {} or not net.gone[row]
    assert len(found) == net.keys
    return Effects(found, net.cleared)


@given(histories)
def test_array_operations_give_the_effects_of_single_changes(changes: list[RecordChange]) -> None:
    assert as_effects(net_effects(arrays(TABLE, changes))) == effects(changes, KEY)


@given(before=histories, changes=histories, cuts=st.lists(st.integers(0, 20), max_size=4))
def test_slices_composed_in_order_give_the_effects_of_the_whole(
    before: list[RecordChange], changes: list[RecordChange], cuts: list[int]
) -> None:
    rows: dict[str, dict[str, str | None]] = {}
    valid(rows, before)
    kept = valid(rows, list(changes))
    edges = [0, *sorted(min(cut, len(kept)) for cut in cuts), len(kept)]
    slices = [net_effects(arrays(TABLE, kept[low:high])) for low, high in pairwise(edges)]
    whole = slices[0]
    for each in slices[1:]:
        whole = composed(whole, each)
    assert as_effects(whole) == effects(kept, KEY)
    if len(slices) > 2:
        right = slices[-1]
        for each in reversed(slices[:-1]):
            right = composed(each, right)
        assert as_effects(right) == as_effects(whole)


def test_a_row_that_moves_often_keeps_its_values() -> None:
    chain = [RecordChange(IoType.KEY_FIELD_COMP, {"id": str(n)}, {"id": str(n + 1)}) for n in range(1000)]
    found = as_effects(net_effects(arrays(TABLE, [RecordChange(IoType.FIELD_COMP, {}, {"id": "0", "v": "x"}), *chain])))
    assert found.by_key["1000"] == Effect("0", {"id": "1000", "v": "x"})
    assert all(found.by_key[str(n)] == Effect(None, None) for n in range(1000))


def test_a_renamed_column_keeps_its_values_if_its_number_is_known() -> None:
    old = TABLE._replace(columns=tuple(column._replace(number=at) for at, column in enumerate(TABLE.columns, 1)))
    new = old._replace(columns=(old.columns[0], old.columns[1]._replace(name="renamed"), old.columns[2]))
    first = net_effects(arrays(old, [RecordChange(IoType.INSERT, {}, {"id": "1", "v": "a", "w": "b"})]))
    second = net_effects(arrays(new, [RecordChange(IoType.FIELD_COMP, {}, {"id": "1", "w": "c"})]))
    assert as_effects(composed(first, second)).by_key == {"1": Effect(None, {"id": "1", "renamed": "a", "w": "c"})}


@pytest.mark.parametrize("empty", ["first", "second"])
def test_an_empty_slice_changes_nothing(empty: str) -> None:
    some = net_effects(arrays(TABLE, [RecordChange(IoType.FIELD_COMP, {}, {"id": "1", "v": "a"})]))
    none = net_effects(arrays(TABLE, []))
    assert as_effects(composed(*((none, some) if empty == "first" else (some, none)))) == as_effects(some)
