"""The columns that find a row and the columns that an UPDATE sets, the same for every database."""

from __future__ import annotations

import pytest

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.row_search import RowSearch
from ggshell.pipeline.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName

COLUMNS = (
    TargetColumn("id", "integer"),
    TargetColumn("a", "text"),
    TargetColumn("sum", "integer", writable=False),
)
SOURCE = TableDefinition(TableName("hr", "t"), tuple(Column(each.name, each.type_name) for each in COLUMNS), (0,))
KEYED = TableMapping(SOURCE, TargetTable(TableName("hr", "t"), COLUMNS), COLUMNS, (0,), single=True)
COMPARING = KEYED._replace(compared_updates=frozenset({1}), compared_deletes=frozenset({1}))
KEYLESS = KEYED._replace(key=(0, 1, 2), single=False)


def test_the_key_finds_a_row() -> None:
    search = RowSearch(KEYED)
    assert not search.whole_row
    assert search.for_delete((0, 1)) == [0]
    assert search.for_update((1, 0), moves=False) == [1]
    with pytest.raises(ApplyError, match=r"the trail record lacks id, required to find rows of hr\.t"):
        search.for_delete((1,))


def test_compared_columns_find_a_row_if_the_image_is_the_one_before_the_change() -> None:
    search = RowSearch(COMPARING)
    assert search.for_delete((0, 1)) == [0, 1]
    assert search.for_update((0, 1), moves=True) == [0, 1]
    with pytest.raises(ApplyError, match="COMPARECOLS"):
        search.for_update((0, 1), moves=False)
    with pytest.raises(ApplyError, match="COMPARECOLS"):
        search.for_delete((0,))


def test_all_columns_that_are_known_find_a_row_without_a_key() -> None:
    search = RowSearch(KEYLESS)
    assert search.whole_row
    assert search.for_delete((0, 1)) == [0, 1]
    assert not search.finds_one([(0, b"1"), (1, b"x")])


def test_a_key_with_null_may_find_several_rows() -> None:
    assert RowSearch(KEYED).finds_one([(0, b"1"), (1, None)])
    assert not RowSearch(KEYED).finds_one([(0, None)])


def test_an_update_sets_the_key_only_if_it_changes() -> None:
    search = RowSearch(KEYED)
    assert search.set_places((0, 1, 2)) == [1]
    assert search.set_places((0, 1, 2), moves=True) == [0, 1]
