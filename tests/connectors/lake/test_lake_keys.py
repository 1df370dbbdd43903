"""Changes of a table's key, and a table that is dropped and created again: the lake has each row of the source once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from batches import Row, ddl_row, ddl_statement
from lakes import Lake, image, key_update
from test_lake_schema import ID, ITEMS, LABEL, PRICE, SIZE, Changing, insert, update

from ggshell.connectors.lake.target import TableForm
from ggshell.errors import ApplyError
from ggshell.parameters.lake_tables import Deletes, LakeLayouts, TableLayout
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

each_form = pytest.mark.parametrize("lake", list(TableForm), indirect=True)
BY_LABEL = ITEMS._replace(key=(1,))
BY_BOTH = ITEMS._replace(key=(0, 1))


def delete(table: TableDefinition, *values: str | None) -> Row:
    return Row(table, IoType.DELETE, image(*values))


@each_form
@pytest.mark.parametrize("together", [False, True], ids=["in two batches", "in one batch"])
def test_rows_have_the_new_key_after_a_change_of_the_key(lake: Lake, together: bool) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    before = [insert(ITEMS, "3", "c", "3", "3"), update(ITEMS, id="1", price="10")]
    after = [update(BY_LABEL, id="2", label="b", price="20"), delete(BY_LABEL, "3", "c")]
    for rows in [before + after] if together else [before, after]:
        changing.batch(*rows)
    changing.batch(update(BY_LABEL, label="a", price="11"), insert(BY_LABEL, "4", "d", "4", "4"))
    assert [(number, str(price)) for number, price in changing.rows("id", "price")] == [
        (1, "11.00"),
        (2, "20.00"),
        (4, "4.00"),
    ]
    assert changing.deliveries.messages == ["Rewriting hr.items: its key has changed to label text."]


@each_form
def test_a_key_changes_twice_in_one_batch(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    changing.batch(
        update(BY_LABEL, id="1", label="a", price="2"),
        insert(BY_LABEL, "2", "b", "5", "5"),
        update(BY_BOTH, id="1", label="a", price="3"),
        key_update(ITEMS, 2, 7),
    )
    assert [(number, str(price)) for number, price in changing.rows("id", "price")] == [(1, "3.00"), (7, "5.00")]


@each_form
def test_a_renamed_key_column_is_the_same_key(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    later = ITEMS._replace(columns=(ID._replace(name="ident"), LABEL, PRICE, SIZE))
    changing.batch(update(later, ident="1", price="2"), insert(later, "2", "b", "2", "2"))
    assert [str(price) for _, price in changing.rows("label", "price")] == ["2.00", "2.00"]
    assert not [text for text in changing.deliveries.messages if "key" in text]


@each_form
@pytest.mark.parametrize("deletes", [Deletes.MARKED, Deletes.CLOSED])
def test_deleted_rows_and_earlier_versions_remain_after_a_change_of_the_key(lake: Lake, deletes: Deletes) -> None:
    changing = Changing(lake)
    changing.deliveries.layouts = LakeLayouts((("hr.*", TableLayout(deletes=deletes)),))
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    changing.batch(delete(ITEMS, "2"), insert(ITEMS, "3", "b", "3", "3"), update(ITEMS, id="1", price="10"))
    changing.batch(update(BY_LABEL, label="b", price="30"), update(BY_LABEL, label="a", price="11"))
    present = [row[:2] for row in _rows(changing, deletes) if row[2]]
    assert present == [(1, "11.00"), (3, "30.00")]
    past = [row[:2] for row in _rows(changing, deletes) if not row[2]]
    expected = [(1, "1.00"), (1, "10.00"), (2, "2.00"), (3, "3.00")] if deletes is Deletes.CLOSED else [(2, "2.00")]
    assert past == expected


def _rows(changing: Changing, deletes: Deletes) -> list[tuple[Any, ...]]:
    """Number, price, and whether the row is there at present."""
    is_history = deletes is Deletes.CLOSED
    found = changing.rows("id", "price", "_current" if is_history else "_deleted")
    return sorted((number, str(price), is_marked == is_history) for number, price, is_marked in found)


@each_form
def test_a_key_that_does_not_identify_the_rows_stops_the_delivery(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    tenant = Column("tenant", "integer", 23, False, 5)
    later = ITEMS._replace(columns=(*ITEMS.columns, tenant), key=(4, 0))
    with pytest.raises(ApplyError) as refused:
        changing.batch(update(later, id="1", label="a", price="2", tenant="1"))
    assert refused.value.code == "GGS-00736"
    assert "tenant, id" in str(refused.value)


@each_form
def test_a_table_that_is_created_again_has_its_own_rows_only(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "ten", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    again = TableDefinition(
        ITEMS.name, (Column("label", "integer", 23, False, 1), Column("since", "date", 1082, True, 2)), (0,)
    )
    created = ddl_row(ddl_statement("CREATE TABLE", "CREATE TABLE items (...)", name="items"))
    changing.batch(delete(ITEMS, "1"), created, insert(again, "7", "2026-11-27"))
    assert [row[0] for row in changing.rows("label")] == [7]


@each_form
def test_a_creation_alone_empties_the_table_of_that_name(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    created = ddl_statement("CREATE TABLE", "CREATE TABLE items (...)", name="items")
    altered = ddl_statement("ALTER TABLE", "ALTER TABLE items ADD x int", name="items")
    changing.batch(ddl_row(altered), ddl_row(ddl_statement("CREATE TABLE", "CREATE TABLE other (...)", name="other")))
    assert changing.rows("id") == [(1,)]
    changing.batch(ddl_row(created))
    assert changing.rows("id") == []
    changing.batch(insert(ITEMS, "2", "b", "2", "2"))
    assert changing.rows("id") == [(2,)]
    assert changing.deliveries.messages == []


@each_form
def test_deleted_rows_of_a_truncated_table_do_not_need_the_new_key(lake: Lake) -> None:
    changing = Changing(lake)
    changing.deliveries.layouts = LakeLayouts((("hr.*", TableLayout(deletes=Deletes.MARKED)),))
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    tenant = Column("tenant", "integer", 23, False, 5)
    later = ITEMS._replace(columns=(*ITEMS.columns, tenant), key=(4, 0))
    changing.batch(Row(later, IoType.PURGE_DATA, b""), insert(later, "1", "c", "3", "3", "7"))
    assert changing.rows("id", "label", "_deleted") == [(1, "a", True), (1, "c", False), (2, "b", True)]


@each_form
def test_a_truncate_without_the_columns_of_its_table_empties_it(lake: Lake) -> None:
    """The log of MariaDB does not describe the table of a TRUNCATE."""
    changing = Changing(lake)
    truncate = Row(TableDefinition(ITEMS.name, (), ()), IoType.PURGE_DATA, b"")
    changing.batch(truncate)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    changing.batch(truncate)
    assert changing.rows("id", "label") == []
    changing.batch(insert(ITEMS, "2", "b", "2", "2"), truncate, insert(ITEMS, "3", "c", "3", "3"))
    assert changing.rows("id", "label") == [(3, "c")]


@each_form
def test_keys_of_several_columns_are_different_whatever_characters_they_contain(lake: Lake) -> None:
    """Regression: the text of a key joined the values with a character that they can contain."""
    pairs = [
        ("", "\x01y"),
        ("\x01", "y"),
        ("x\x01", "y"),
        ("x", "\x01y"),
        ("\x02", ""),
        ("\x03a", ""),
        ("\x03", "a"),
        ("", ""),
    ]
    both = TableDefinition(TableName("hr", "items"), (LABEL, LABEL._replace(name="other", number=8), PRICE), (0, 1))
    changing = Changing(lake)
    changing.batch(*(insert(both, *pair, str(number)) for number, pair in enumerate(pairs)))
    changing.batch(delete(both, *pairs[0]), update(both, label=pairs[2][0], other=pairs[2][1], price="99"))
    expected = {pair: number for number, pair in enumerate(pairs) if number} | {pairs[2]: 99}
    found = {(label, other): int(price) for label, other, price in changing.rows("label", "other", "price")}
    assert found == expected


@each_form
def test_a_truncated_table_that_the_lake_lacks_is_reported(lake: Lake) -> None:
    """The partition of a table: its rows are in the current table under the name of the root."""
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    partition = ITEMS._replace(name=TableName("hr", "items_2026"))
    for _ in range(2):
        changing.batch(Row(partition, IoType.PURGE_DATA, b""))
    changing.batch(Row(ITEMS, IoType.PURGE_DATA, b""))
    assert changing.deliveries.messages[:1] == [
        "hr.items_2026 is truncated, and the lake does not have it. The rows of a partition stay in its table."
    ]
    assert "hr.items is truncated" not in " ".join(changing.deliveries.messages)
    assert changing.rows("id") == []


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (ITEMS._replace(name=TableName("hr", "p%41")), "cannot open a table with % in its name"),
        (ITEMS._replace(columns=(ID, LABEL, LABEL._replace(name="Label", number=9))), "both columns label and Label"),
    ],
)
def test_a_table_that_delta_cannot_have_is_refused_by_its_name(
    lake: Lake, table: TableDefinition, message: str
) -> None:
    with pytest.raises(ApplyError, match=message):
        Changing(lake).batch(insert(table, "1", "a", "b"))


def of_type(type_name: str) -> TableDefinition:
    """ITEMS after ALTER TABLE … ALTER id TYPE."""
    return ITEMS._replace(columns=(ID._replace(type_name=type_name), LABEL, PRICE, SIZE))


TYPES = [
    ("integer", "numeric(10,2)", {"1": "1.00", "2": "2.00", "3": "3.00"}),
    ("integer", "text", {"1": "1", "2": "2", "3": "3"}),
    ("integer", "bigint", {"1": "1", "2": "2", "3": "3"}),
    ("numeric(10,2)", "numeric(12,4)", {"1.00": "1.0000", "2.00": "2.0000", "3.00": "3.0000"}),
    ("date", "timestamp without time zone", {f"2026-11-0{day}": f"2026-11-0{day} 00:00:00" for day in (1, 2, 3)}),
    ("character varying(9)", "text", {"a": "a", "b": "b", "c": "c"}),
]


@pytest.mark.parametrize(
    ("lake", "before", "after", "texts", "together"),
    [
        pytest.param(form, *types, (place + number) % 2 == 1, id=f"{types[0]}-{types[1]}-{form}")
        for place, form in enumerate(TableForm)
        for number, types in enumerate(TYPES)
    ],
    indirect=["lake"],
)
def test_rows_are_found_after_a_change_of_the_type_of_the_key(
    lake: Lake, before: str, after: str, texts: dict[str, str], together: bool
) -> None:
    first, second, third = texts
    old, new = of_type(before), of_type(after)
    changing = Changing(lake)
    changing.batch(insert(old, first, "a", "1", "1"), insert(old, second, "b", "2", "2"))
    rows = [insert(old, third, "c", "3", "3"), update(old, id=second, price="9")]
    later = [
        update(new, id=texts[first], price="10"),
        delete(new, texts[second]),
        update(new, id=texts[third], size="4"),
    ]
    for part in [rows + later] if together else [rows, later]:
        changing.batch(*part)
    assert changing.rows("label", "price", "size") == [("a", Decimal("10.00"), 1.0), ("c", Decimal("3.00"), 4.0)]


@each_form
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("character varying(9)", "character(9)", "a        "),
        ("timestamp with time zone", "timestamp without time zone", "2026-11-01 02:00:00"),
        ("timestamp without time zone", "timestamp(0) without time zone", "2026-11-01 00:00:00"),
        ("real", "double precision", "1.10000002384186"),
        ("boolean", "text", "true"),
    ],
)
def test_a_type_of_the_key_whose_texts_are_unknown_stops_the_delivery(
    lake: Lake, before: str, after: str, text: str
) -> None:
    first = {"character varying(9)": "a", "real": "1.1", "boolean": "t"}.get(before, "2026-11-01 00:00:00")
    changing = Changing(lake)
    changing.batch(insert(of_type(before), first + ("+00" if "with time" in before else ""), "a", "1", "1"))
    with pytest.raises(ApplyError, match=r"key of hr\.items") as refused:
        changing.batch(update(of_type(after), id=text, price="2"))
    assert refused.value.code == "GGS-00736"


@each_form
@pytest.mark.parametrize("together", [False, True], ids=["in two batches", "in one batch"])
def test_a_table_that_loses_its_key_stops_the_delivery(lake: Lake, together: bool) -> None:
    changing = Changing(lake)
    keyless = ITEMS._replace(key=())
    rows, later = [insert(ITEMS, "1", "a", "1", "1")], [insert(keyless, "2", "b", "2", "2")]
    if not together:
        changing.batch(*rows)
    with pytest.raises(ApplyError, match=r"hr\.items no longer has a key") as refused:
        changing.batch(*later if not together else rows + later)
    assert refused.value.code == "GGS-00736"
