"""The columns of a Relation message are found in the catalog, which can be later than the message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.postgres.column_identity import aligned
from ggshell.connectors.postgres.describe import CatalogColumn
from ggshell.connectors.postgres.pgoutput import RelationColumn

TEXT, INTEGER = 25, 23


def message(names: str, types: dict[str, int] | None = None) -> list[RelationColumn]:
    return [RelationColumn(False, name, (types or {}).get(name, TEXT), -1) for name in names.split()]


def catalog(columns: str, types: dict[str, int] | None = None, generated: str = "") -> list[CatalogColumn]:
    """``columns``: the names with their numbers, as in ``a1 b3``."""
    return [
        CatalogColumn(
            each[0], "", (types or {}).get(each[0], TEXT), True, False, "", "s" if each[0] in generated else "",
            int(each[1:]), None, 1,
        )
        for each in columns.split()
    ]  # fmt: skip


def found(names: str, columns: str, *dropped: int, **options: dict[str, int]) -> list[int]:
    """The numbers of the columns of a message; 0 for one that was dropped since. ``dropped``: what can have been dropped."""
    pairs = aligned(message(names, options.get("then")), catalog(columns, options.get("now")), lambda: dropped)
    return [0 if each is None else each.number for each in pairs]


@pytest.mark.parametrize(
    ("names", "columns", "dropped", "numbers"),
    [
        ("a b c", "a1 b2 c3", [], [1, 2, 3]),
        ("a b c", "a1 x2 c3", [], [1, 2, 3]),
        ("a b", "a1 x2 y3", [], [1, 2]),
        ("a b c", "x1 y2 z3 n4", [], [1, 2, 3]),
        ("a b", "b1 a2", [], [1, 2]),
        ("a b", "a1 o2 b3", [], [1, 2]),
        ("a b c", "a1 c3", [2], [1, 0, 3]),
        ("a b c", "a1 c3 d4", [2], [1, 0, 3]),
        ("a c", "a1 c3", [], [1, 3]),
        ("a c", "a1 x3", [], [1, 3]),
        ("a c", "a1 x3", [2], [1, 0]),
        ("a c d", "a1 x3 d4", [2], [1, 3, 4]),
        ("a b", "a1 x2 z4", [3], [1, 2]),
        ("a b c", "a1", [2, 3], [1, 0, 0]),
        ("a b", "", [], [0, 0]),
        ("a b c", "b2 c3", [1], [0, 2, 3]),
    ],
    ids=[
        "unchanged",
        "a renamed column",
        "a renamed one and a new one",
        "all renamed",
        "exchanged names",
        "a new column has the name of a renamed one",
        "a dropped column",
        "a dropped one and a new one",
        "a column dropped long before",
        "renamed, and another dropped long before",
        "dropped while another was added, or renamed",
        "renamed, and another dropped",
        "renamed, and a new one dropped",
        "the last columns dropped",
        "a table that is gone",
        "the first column dropped",
    ],
)
def test_columns_are_found_by_their_place(names: str, columns: str, dropped: list[int], numbers: list[int]) -> None:
    assert found(names, columns, *dropped) == numbers


def test_the_type_decides_between_a_renamed_column_and_a_dropped_one() -> None:
    assert found("a b c", "a1 x3", 2, then={"b": INTEGER}) == [1, 0, 3]
    assert found("a b", "a1 b2", then={"b": INTEGER}) == [1, 2]


def test_generated_columns_are_not_in_a_message() -> None:
    columns = catalog("a1 g2 x3", generated="g")
    assert [each.number for each in aligned(message("a b"), columns, list) if each is not None] == [1, 3]


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(0, 8), st.integers(0, 3))
def test_without_dropped_columns_the_places_decide(renamed: list[int], count: int, added: int) -> None:
    """Whatever the new names are."""
    then = " ".join(f"{chr(97 + place)}" for place in range(count))
    names = [chr(97 + place) for place in range(count)]
    for turn, place in enumerate(renamed):
        if place < count:
            names[place] = chr(110 + turn)
    names += [chr(65 + place) for place in range(added)]
    now = " ".join(f"{name}{place + 1}" for place, name in enumerate(names))
    assert found(then, now) == list(range(1, count + 1))
