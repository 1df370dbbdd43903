"""The keys that transactions touch, by the constraints of the target."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch

from ggshell.pipeline.apply.dependencies import KeyFinder, Touched
from ggshell.pipeline.apply.target import ForeignKey, TableMapping, TargetColumn, TargetTable
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

PARENT, CHILD = TableName("b", "parents"), TableName("b", "children")
PARENTS = TableDefinition(TableName("a", "parents"), (Column("id", "int4"), Column("code", "text")), (0,))
CHILDREN = TableDefinition(TableName("a", "children"), (Column("id", "int4"), Column("parent", "int4")), (0,))


def mapping(source: TableDefinition, target: TargetTable) -> TableMapping:
    return TableMapping(source, target, target.columns, source.key, True)


def columns(*names: str, exact: bool = True) -> tuple[TargetColumn, ...]:
    return tuple(TargetColumn(name, "text", exact=exact) for name in names)


MAPPINGS = {
    PARENTS: mapping(
        PARENTS,
        TargetTable(PARENT, columns("id", "code"), ("id",), (frozenset({"id"}), frozenset({"code"})), referenced=True),
    ),
    CHILDREN: mapping(
        CHILDREN,
        TargetTable(
            CHILD,
            columns("id", "parent"),
            ("id",),
            (frozenset({"id"}),),
            foreign=(ForeignKey(("parent",), PARENT, ("id",)),),
        ),
    ),
}


def image(*values: str | None, first: int = 0) -> bytes:
    return encode_image(
        (index, value.encode() if value is not None else None) for index, value in enumerate(values, first)
    )


Mappings = dict[TableDefinition, TableMapping]


def touched(*rows: Row, mappings: Mappings = MAPPINGS) -> list[Touched]:
    """Each row is a transaction of its own."""
    batch = make_batch([Tx(number, [row]) for number, row in enumerate(rows, 1)])
    return KeyFinder().touched(batch, batch.pieces, {n: mappings[table] for n, table in enumerate(batch.tables)})


def conflict(one: Row, other: Row, mappings: Mappings = MAPPINGS) -> bool:
    first, second = touched(one, other, mappings=mappings)
    return bool(first.writes & (second.writes | second.reads) or second.writes & first.reads)


def insert(table: TableDefinition, *values: str | None) -> Row:
    return Row(table, IoType.INSERT, image(*values))


def update(table: TableDefinition, *values: str) -> Row:
    return Row(table, IoType.FIELD_COMP, image(*values))


def delete(table: TableDefinition, key: str) -> Row:
    return Row(table, IoType.DELETE, image(key))


def key_update(table: TableDefinition, before: str, *after: str) -> Row:
    return Row(table, IoType.KEY_FIELD_COMP, join_key_update(image(before), image(*after)))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (insert(PARENTS, "1", "a"), insert(PARENTS, "2", "b"), False),
        (insert(PARENTS, "1", "a"), update(PARENTS, "1", "b"), True),
        (insert(PARENTS, "1", "a"), insert(PARENTS, "2", "a"), True),  # A unique value.
        (update(PARENTS, "1", "b"), insert(PARENTS, "2", "a"), True),  # May set the value free.
        (Row(PARENTS, IoType.FIELD_COMP, image("1")), insert(PARENTS, "2", "a"), False),  # Leaves it unchanged.
        (delete(PARENTS, "1"), insert(PARENTS, "2", "a"), True),  # May set it free, too.
        (insert(PARENTS, "1", "a"), insert(CHILDREN, "5", "1"), True),  # A child and its parent.
        (insert(PARENTS, "2", "a"), insert(CHILDREN, "5", "1"), False),
        (insert(CHILDREN, "5", "1"), insert(CHILDREN, "6", "1"), False),  # Of the same parent.
        (insert(CHILDREN, "5", None), insert(PARENTS, "1", "a"), False),
        (delete(CHILDREN, "5"), delete(PARENTS, "1"), True),  # May have been its last child.
        (update(CHILDREN, "5", "2"), delete(PARENTS, "1"), True),
        (update(CHILDREN, "5", "2"), insert(PARENTS, "1", "a"), False),
        (key_update(CHILDREN, "5", "6", "1"), insert(CHILDREN, "5", "2"), True),
        (key_update(CHILDREN, "5", "6", "1"), insert(CHILDREN, "6", "2"), True),
        (key_update(CHILDREN, "5", "6", "1"), insert(CHILDREN, "7", "2"), False),
    ],
)
def test_rows_conflict_when_their_order_matters(one: Row, other: Row, expected: bool) -> None:
    assert conflict(one, other) is expected
    assert conflict(other, one) is expected


def test_a_row_that_a_cascade_may_have_removed_is_inserted_after_it() -> None:
    """The log of some sources has only the deleted parent, which can be that of another parent of the same child."""
    target = MAPPINGS[CHILDREN].target._replace(cascades=(PARENT,))
    found = {**MAPPINGS, CHILDREN: mapping(CHILDREN, target)}
    removed, child = touched(delete(PARENTS, "1"), insert(CHILDREN, "5", "2"), mappings=found)
    assert removed.writes & child.reads
    assert not conflict(delete(PARENTS, "1"), insert(CHILDREN, "5", "2"))
    first, second = touched(insert(CHILDREN, "5", "2"), insert(CHILDREN, "6", "2"), mappings=found)
    assert not first.writes & (second.writes | second.reads)


def with_reference(
    reference: ForeignKey, *, exact: bool = True, referred: frozenset[str] = frozenset({"id"})
) -> Mappings:
    """Children that refer to parents in this way; ``exact``: the parent's types are."""
    parents = MAPPINGS[PARENTS].target._replace(columns=columns("id", "code", exact=exact), referred=(referred,))
    children = MAPPINGS[CHILDREN].target._replace(foreign=(reference,))
    return {PARENTS: mapping(PARENTS, parents), CHILDREN: mapping(CHILDREN, children)}


@pytest.mark.parametrize("exact", [False, True])
def test_a_child_whose_text_is_not_that_of_its_parent_conflicts_with_it(exact: bool) -> None:
    """An integer can refer to a number with decimals, and a date to a timestamp."""
    found = with_reference(ForeignKey(("parent",), PARENT, ("id",), same_text=False), exact=exact)
    child = insert(CHILDREN, "5", "1")
    assert conflict(insert(PARENTS, "1.0", "a"), child, found)
    assert conflict(child, delete(PARENTS, "1.0"), found)


def test_a_child_whose_reference_is_not_mapped_conflicts_with_parents() -> None:
    """The target sets the reference itself: a default value, a trigger, a generated column."""
    found = with_reference(ForeignKey(("other",), PARENT, ("id",)))
    assert conflict(insert(PARENTS, "1", "a"), insert(CHILDREN, "5", "1"), found)


def test_a_reference_conflicts_with_an_update_that_may_replace_its_value() -> None:
    found = with_reference(ForeignKey(("parent",), PARENT, ("code",)), referred=frozenset({"code"}))
    replaced = update(PARENTS, "1", "b")
    assert conflict(insert(CHILDREN, "5", "a"), replaced, found)
    assert conflict(insert(CHILDREN, "5", "b"), replaced, found)
    assert conflict(delete(CHILDREN, "5"), replaced, found)
    assert not conflict(delete(CHILDREN, "5"), Row(PARENTS, IoType.FIELD_COMP, image("1")), found)
    assert not conflict(insert(CHILDREN, "5", "a"), insert(PARENTS, "2", "b"), found)


def test_a_reference_to_columns_that_are_not_unique_conflicts_with_its_parents() -> None:
    """MariaDB allows it; each of the rows with the value is a parent."""
    found = with_reference(ForeignKey(("parent",), PARENT, ("code",)), referred=frozenset({"code"}))
    target = found[PARENTS].target._replace(unique=(frozenset({"id"}),))
    found[PARENTS] = mapping(PARENTS, target)
    assert conflict(insert(PARENTS, "1", "a"), insert(CHILDREN, "5", "a"), found)
    assert not conflict(insert(PARENTS, "1", "a"), insert(CHILDREN, "5", "b"), found)


def test_for_types_whose_text_does_not_show_equality_the_whole_key_is_used() -> None:
    target = TargetTable(PARENT, columns("id", "code", exact=False), ("id",), (frozenset({"id"}),))
    found = {PARENTS: mapping(PARENTS, target)}
    first, second = touched(insert(PARENTS, "1.0", "a"), insert(PARENTS, "2", "b"), mappings=found)
    assert first.writes & second.writes


def test_a_truncate_conflicts_with_everything() -> None:
    (found,) = touched(Row(PARENTS, IoType.PURGE_DATA, b""))
    assert found.alone
