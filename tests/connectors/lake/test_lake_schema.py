"""Changes of a table's columns at the source: what each form of a lake makes of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from batches import Row
from deliveries import BEGIN, Deliveries
from lakes import Lake, image
from readers import OWN, tables_of_readers

from ggshell.connectors.lake.target import TableForm
from ggshell.parameters.lake_tables import Deletes, LakeLayouts, PartitionField, TableLayout, Transform
from ggshell.record.definition import Column, TableDefinition, column_number
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.types import TableName

ITEMS = TableDefinition(
    TableName("hr", "items"),
    (
        Column("id", "integer", 23, False, 1),
        Column("label", "text", 25, True, 2),
        Column("price", "numeric(8,2)", 1700, True, 3),
        Column("size", "real", 700, True, 4),
    ),
    (0,),
)
ID, LABEL, PRICE, SIZE = ITEMS.columns
each_form = pytest.mark.parametrize("lake", list(TableForm), indirect=True)


def insert(table: TableDefinition, *values: str | None) -> Row:
    return Row(table, IoType.INSERT, image(*values))


def update(table: TableDefinition, **values: str) -> Row:
    names = [column.name for column in table.columns]
    return Row(table, IoType.FIELD_COMP, encode_image(sorted((names.index(n), v.encode()) for n, v in values.items())))


class Changing:
    """Delivers one batch after another."""

    def __init__(self, lake: Lake) -> None:
        self.deliveries = Deliveries(lake)
        self._lake, self._end, self._number = lake, BEGIN, 0

    def batch(self, *rows: Row) -> None:
        end = self._lake.write(list(rows))
        self.deliveries.batch(self._number, self._end, end)
        self._end, self._number = end, self._number + 1

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return self._lake.rows(ITEMS, columns)


@each_form
def test_a_renamed_column_keeps_its_values_where_the_form_can(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    later = ITEMS._replace(columns=(ID, LABEL._replace(name="title"), PRICE, SIZE))
    changing.batch(insert(later, "3", "c", "3", "3"), update(later, id="2", price="9"))
    changing.batch(update(later, id="1", title="new"))
    if lake.form is TableForm.DELTA:
        assert changing.rows("id", "label", "title") == [(1, "a", "new"), (2, "b", None), (3, None, "c")]
        assert (
            changing.deliveries.messages
            == [
                "Column label of hr.items was dropped or renamed at the source: it stays in the lake, and new rows have NULL."
            ]
            * 2
        )  # Each batch is a process of its own here.
        return
    assert changing.rows("id", "title", "price") == [
        (1, "new", Decimal("1.00")),
        (2, "b", Decimal("9.00")),
        (3, "c", Decimal("3.00")),
    ]
    assert changing.deliveries.messages == ["Column label of hr.items is renamed to title."]


@each_form
def test_a_wider_type_keeps_all_values(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1.50", "1.5"), insert(ITEMS, "2", "b", "2", "2"))
    wide = (ID._replace(type_name="bigint"), LABEL, PRICE._replace(type_name="numeric(12,2)"))
    later = ITEMS._replace(columns=(*wide, SIZE._replace(type_name="double precision")))
    changing.batch(insert(later, "4000000000", "c", "1234567890.25", "1e300"), update(later, id="2", label="x"))
    assert changing.rows("id", "label", "price", "size") == [
        (1, "a", Decimal("1.50"), 1.5),
        (2, "x", Decimal("2.00"), 2.0),
        (4_000_000_000, "c", Decimal("1234567890.25"), 1e300),
    ]
    rewriting = [text for text in changing.deliveries.messages if text.startswith("Rewriting")]
    assert bool(rewriting) == (lake.form is TableForm.DELTA)


@each_form
def test_a_column_may_become_nullable_and_not_nullable_again(lake: Lake) -> None:
    """Every column of a lake takes NULL, so SET NOT NULL and DROP NOT NULL change nothing there and lose nothing."""
    changing = Changing(lake)
    strict = ITEMS._replace(columns=(ID, LABEL._replace(nullable=False), PRICE, SIZE))
    changing.batch(insert(strict, "1", "a", "1", "1"), insert(strict, "2", "b", "2", "2"))
    changing.batch(insert(ITEMS, "3", None, "3", "3"), update(ITEMS, id="2", price="9"))
    changing.batch(insert(strict, "4", "d", "4", "4"), update(strict, id="3", label="c"))
    assert changing.rows("id", "label") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert changing.deliveries.messages == []


@each_form
def test_a_dropped_column_stays_and_is_null_in_new_rows(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    later = ITEMS._replace(columns=(ID, PRICE, SIZE, Column("since", "date", 1082, True, 5)))
    changing.batch(insert(later, "3", "3", "3", "2026-11-25"), update(later, id="2", price="9"))
    assert changing.rows("id", "label", "since") == [(1, "a", None), (2, "b", None), (3, None, date(2026, 11, 25))]
    assert changing.deliveries.messages == [
        "Column label of hr.items was dropped or renamed at the source: it stays in the lake, and new rows have NULL."
    ]


GRADE = Column("grade", "integer", 23, True, 5, "7")
GRADED = ITEMS._replace(columns=(*ITEMS.columns, GRADE))


@each_form
def test_earlier_rows_get_the_default_of_an_added_column(lake: Lake) -> None:
    """Rows of earlier batches, rows of this batch from before the change, and rows that an update does not contain whole."""
    changing = Changing(lake)
    changing.batch(
        insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"), insert(ITEMS, "3", "c", "3", "3")
    )
    changing.batch(
        insert(ITEMS, "4", "d", "4", "4"),
        update(ITEMS, id="3", price="30"),
        update(GRADED, id="2", price="20"),
        insert(GRADED, "5", "e", "5", "5", None),
        update(GRADED, id="3", grade="9"),
    )
    changing.batch(update(GRADED, id="4", price="40"), insert(GRADED, "6", "f", "6", "6", "8"))
    assert [(number, int(price), grade) for number, price, grade in changing.rows("id", "price", "grade")] == [
        (1, 1, 7),
        (2, 20, 7),
        (3, 30, 9),
        (4, 40, 7),
        (5, 5, None),
        (6, 6, 8),
    ]
    assert changing.deliveries.messages == ["Rewriting hr.items: earlier rows get the default of grade."]


@each_form
def test_a_default_that_the_type_in_the_lake_does_not_hold_is_null_in_earlier_rows(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"))
    until = Column("until", "date", 1082, True, 5, "infinity")
    later = ITEMS._replace(columns=(*ITEMS.columns, until))
    changing.batch(insert(later, "2", "b", "2", "2", "2026-11-25"))
    assert changing.rows("id", "until") == [(1, None), (2, date(2026, 11, 25))]


@each_form
def test_every_version_of_a_row_gets_the_default_of_an_added_column(lake: Lake) -> None:
    changing = Changing(lake)
    changing.deliveries.layouts = LakeLayouts((("hr.*", TableLayout(deletes=Deletes.CLOSED)),))
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    changing.batch(update(ITEMS, id="1", price="10"))
    changing.batch(insert(ITEMS, "3", "c", "3", "3"), update(GRADED, id="1", price="11"))
    found = changing.rows("id", "price", "grade", "_current")
    assert sorted((number, int(price), grade, current) for number, price, grade, current in found) == [
        (1, 1, 7, False),
        (1, 10, 7, False),
        (1, 11, 7, True),
        (2, 2, 7, True),
        (3, 3, 7, True),
    ]


@each_form
def test_all_columns_change_within_one_batch(lake: Lake) -> None:
    changing = Changing(lake)
    later = ITEMS._replace(columns=(ID, LABEL._replace(name="title"), PRICE, SIZE))
    changing.batch(
        insert(ITEMS, "1", "a", "1", "1"), update(later, id="1", price="2"), insert(later, "2", "b", "3", "3")
    )
    assert changing.rows("id", "title", "price") == [(1, "a", Decimal("2.00")), (2, "b", Decimal("3.00"))]


CODES = ITEMS._replace(columns=(ID, LABEL, PRICE._replace(type_name="text"), SIZE))


@each_form
def test_a_type_that_holds_all_values_replaces_the_former_one(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(CODES, "1", "a", "10", "1"), insert(CODES, "2", "b", "20.50", "2"))
    changing.batch(update(ITEMS, id="1", price="11.00"))
    assert changing.rows("id", "label", "price") == [(1, "a", Decimal("11.00")), (2, "b", Decimal("20.50"))]
    assert changing.deliveries.messages == ["Rewriting hr.items: the type of price has changed."]


@each_form
def test_values_that_a_new_type_does_not_hold_stay_and_later_ones_have_a_column_of_their_own(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(CODES, "1", "a", "ten", "1"), insert(CODES, "2", "b", "20", "2"))
    later = ITEMS._replace(columns=(ID, LABEL, PRICE._replace(type_name="integer"), SIZE))
    changing.batch(update(later, id="2", price="21"), update(later, id="1", label="x"))
    changing.batch(insert(later, "3", "c", "30", "3"), update(later, id="2", label="y"))
    assert changing.rows("id", "label", "price", "price_int") == [
        (1, "x", "ten", None),
        (2, "y", "20", 21),
        (3, "c", None, 30),
    ]
    assert set(changing.deliveries.messages) == {
        "Column price of hr.items has another type at the source, which does not hold all values in the lake: "
        "column price_int has the new values."
    }
    changing.batch(update(CODES, id="3", price="thirty"))
    assert changing.rows("id", "price", "price_int")[2] == (3, "thirty", 30)


@each_form
def test_a_column_of_a_new_type_is_renamed_with_its_source(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(CODES, "1", "a", "ten", "1"))
    number = PRICE._replace(type_name="integer")
    changing.batch(insert(ITEMS._replace(columns=(ID, LABEL, number, SIZE)), "2", "b", "20", "2"))
    changing.batch(insert(ITEMS._replace(columns=(ID, LABEL, number._replace(name="cost"), SIZE)), "3", "c", "30", "3"))
    cost = [None, None, 30] if lake.form is TableForm.DELTA else [None, 20, 30]
    assert [row[1] for row in changing.rows("id", "cost")] == cost
    assert [row[1] for row in changing.rows("id", "price")] == ["ten", None, None]


@each_form
def test_the_name_of_another_column_is_not_taken_for_a_new_type(lake: Lake) -> None:
    changing = Changing(lake)
    own = Column("price_int", "text", 25, True, 5)
    changing.batch(insert(CODES._replace(columns=(*CODES.columns, own)), "1", "a", "ten", "1", "own"))
    later = (ID, LABEL, PRICE._replace(type_name="integer"), SIZE, own)
    changing.batch(insert(ITEMS._replace(columns=later), "2", "b", "20", "2", "mine"))
    assert changing.rows("id", "price", "price_int", "price_int_") == [(1, "ten", "own", None), (2, None, "mine", 20)]


@each_form
def test_a_value_that_its_type_does_not_hold_is_reported(lake: Lake) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "NaN", "NaN"), insert(ITEMS, "2", "b", None, None))
    assert changing.rows("id", "price") == [(1, None), (2, None)]
    assert changing.deliveries.messages == [
        "Column price of hr.items has values that its type in the lake does not hold: they are NULL, and the log has them."
    ]


@each_form
def test_a_number_with_more_decimal_places_than_digits_is_stored(lake: Lake) -> None:
    changing = Changing(lake)
    small = ITEMS._replace(columns=(ID, LABEL, PRICE._replace(type_name="numeric(2,5)"), SIZE))
    changing.batch(insert(small, "1", "a", "0.00099", "1"))
    assert changing.rows("id", "price") == [(1, Decimal("0.00099"))]


AGAIN = Column("label", "text", 25, True, 7)
COUNTED = ITEMS._replace(columns=(ID, LABEL, PRICE._replace(type_name="integer"), SIZE))
DOUBLE = ITEMS._replace(columns=(ID, LABEL, PRICE, SIZE._replace(type_name="double precision")))
BARE = ITEMS._replace(columns=(ID, PRICE, SIZE))
STEPS: dict[str, list[list[Row]]] = {
    "a type that does not hold the earlier values": [
        [insert(CODES, "1", "a", "ten", "1"), insert(CODES, "2", "b", "20", "2")],
        [
            update(COUNTED, id="2", price="21"),
            insert(COUNTED, "3", "c", "30", "3"),
        ],
        [update(COUNTED, id="1", label="x")],
    ],
    "a type, and back": [
        [insert(CODES, "1", "a", "ten", "1")],
        [insert(COUNTED, "2", "b", "20", "2")],
        [insert(CODES, "3", "c", "thirty", "3"), update(CODES, id="2", price="twenty")],
    ],
    "a type that holds the earlier values": [
        [insert(CODES, "1", "a", "10", "1")],
        [insert(ITEMS, "2", "b", "20.50", "2"), update(ITEMS, id="1", label="x")],
    ],
    "a double instead of a real": [
        [insert(ITEMS, "1", "a", "1", "0.1"), insert(ITEMS, "2", "b", "1", "0.33333334")],
        [update(DOUBLE, id="2", label="c")],
        [insert(DOUBLE, "3", "c", "1", "0.1")],
    ],
    "a dropped column": [
        [insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2")],
        [update(BARE, id="1", price="10"), insert(BARE, "3", "3", "3")],
        [Row(BARE, IoType.DELETE, image("2"))],
    ],
    "a dropped column and a new one with its name": [
        [insert(ITEMS, "1", "a", "1", "1")],
        [insert(BARE, "2", "2", "2")],
        [insert(ITEMS._replace(columns=(ID, PRICE, SIZE, AGAIN)), "3", "3", "3", "new")],
    ],
    "a dropped column and another default": [
        [insert(ITEMS, "1", "a", "1", "1")],
        [insert(BARE._replace(columns=(*BARE.columns, GRADE)), "2", "2", "2", "8"), update(BARE, id="1", price="5")],
    ],
    "a truncated table": [
        [insert(CODES, "1", "a", "ten", "1")],
        [Row(COUNTED, IoType.PURGE_DATA, b""), insert(COUNTED, "2", "b", "20", "2")],
    ],
}  # fmt: skip


SEEDED = {False: "a new table", True: "a table with rows"}


@pytest.mark.parametrize(
    ("lake", "steps", "seeded"),
    [
        pytest.param(form, steps, (place + number) % 2 == 1, id=f"{SEEDED[(place + number) % 2 == 1]}-{name}-{form}")
        for place, form in enumerate(TableForm)
        for number, (name, steps) in enumerate(STEPS.items())
    ],
    indirect=["lake"],
)
def test_one_batch_has_the_result_of_several(lake: Lake, steps: list[list[Row]], seeded: bool, tmp_path: Path) -> None:
    """Wherever a batch ends, the lake has the same columns and rows.

    Each list of steps is tried with a new table and with one that has rows, in different forms. The same holds for each form.
    """
    before = [[insert(steps[0][0].table, "100", "z", "100", "100")]] if seeded else []
    found = []
    for name, batches in (("several", steps), ("one", [[row for step in steps for row in step]])):
        each = lake if name == "one" else Lake(tmp_path / name, lake.form)
        changing = Changing(each)
        for rows in [*before, *batches]:
            changing.batch(*rows)
        table = tables_of_readers(each.target, ITEMS.name)[OWN]
        found.append(
            (sorted(table.schema.names), sorted(table.select(sorted(table.schema.names)).to_pylist(), key=str))
        )
    assert found[0] == found[1]


def identified(*columns: Column) -> TableDefinition:
    """The table with these columns, whose numbers also identify the table."""
    return ITEMS._replace(columns=tuple(each._replace(number=column_number(500, each.number)) for each in columns))


OLD = identified(ID, LABEL, PRICE)
NEW_LABEL = LABEL._replace(number=9)


@each_form
@pytest.mark.parametrize("together", [False, True], ids=["in two batches", "in one batch"])
@pytest.mark.parametrize(
    ("label", "values"),
    [
        (NEW_LABEL._replace(missing="again"), ["again", "again", "c"]),
        (NEW_LABEL, [None, None, "c"]),
        (NEW_LABEL._replace(type_name="integer", missing="8"), [8, 8, 3]),
    ],
    ids=["with a default", "without a default", "with another type"],
)
def test_a_column_with_the_name_of_a_dropped_one_has_its_own_values(
    lake: Lake, together: bool, label: Column, values: list[Any]
) -> None:
    changing, later = Changing(lake), identified(ID, PRICE, label)
    before = [insert(OLD, "1", "a", "1"), insert(OLD, "2", "b", "2")]
    after = [update(later, id="1", price="10"), insert(later, "3", "3", "c" if label.type_name == "text" else "3")]
    for rows in [before + after] if together else [before, after]:
        changing.batch(*rows)
    assert [row[1] for row in changing.rows("id", "label")] == values
    assert [str(row[1]) for row in changing.rows("id", "price")] == ["10.00", "2.00", "3.00"]
    assert (
        "Rewriting hr.items: label is a different column than before: the rows have its own values."
        in (changing.deliveries.messages)
        or together
    )


@each_form
@pytest.mark.parametrize("deletes", [Deletes.REMOVED, Deletes.CLOSED])
def test_columns_that_exchange_their_names_keep_their_values(lake: Lake, deletes: Deletes) -> None:
    notes = LABEL._replace(name="notes", number=3)
    changing, first = Changing(lake), identified(ID, LABEL, notes)
    changing.deliveries.layouts = LakeLayouts((("hr.*", TableLayout(deletes=deletes)),))
    changing.batch(insert(first, "1", "a", "x"), insert(first, "2", "b", "y"))
    second = identified(ID, LABEL._replace(name="notes"), notes._replace(name="label"))
    changing.batch(update(second, id="1", notes="new"))
    assert [row for row in changing.rows("id", "notes", "label") if row[1] != "a"] == [(1, "new", "x"), (2, "b", "y")]


@each_form
@pytest.mark.parametrize("more", [None, "again"], ids=["without a default", "with a default"])
def test_a_column_with_the_former_name_of_a_renamed_one_has_its_own_values(lake: Lake, more: str | None) -> None:
    """Regression: a Delta table keeps a renamed column, and its values were taken for those of the new one."""
    changing, first = Changing(lake), identified(ID, LABEL)
    changing.batch(insert(first, "1", "a"), insert(first, "2", "b"))
    title = LABEL._replace(name="title")
    changing.batch(update(identified(ID, title), id="1", title="x"))
    second = identified(ID, title, LABEL._replace(number=9, missing=more))
    changing.batch(insert(second, "3", "y", "c"))
    assert changing.rows("id", "label") == [(1, more), (2, more), (3, "c")]
    changing.batch(update(second, id="2", label="new"))
    assert changing.rows("id", "label") == [(1, more), (2, "new"), (3, "c")]


@each_form
def test_a_column_with_the_name_of_one_whose_new_type_has_another_column_has_its_own_values(lake: Lake) -> None:
    changing = Changing(lake)
    number, cost = PRICE._replace(type_name="integer"), PRICE._replace(type_name="integer", name="cost")
    changing.batch(insert(identified(ID, CODES.columns[2]), "1", "ten"))
    changing.batch(insert(identified(ID, number), "2", "20"))
    changing.batch(insert(identified(ID, number), "3", "30"))
    assert changing.rows("id", "price", "price_int") == [(1, "ten", None), (2, None, 20), (3, None, 30)]
    changing.batch(insert(identified(ID, cost, PRICE._replace(number=9)), "4", "40", "4.5"))
    assert changing.rows("id", "price") == [(1, None), (2, None), (3, None), (4, Decimal("4.50"))]


@each_form
def test_a_column_can_take_the_name_of_one_that_is_renamed_too(lake: Lake) -> None:
    notes = LABEL._replace(name="notes", number=3)
    changing, first = Changing(lake), identified(ID, LABEL, notes)
    changing.batch(insert(first, "1", "a", "x"), insert(first, "2", "b", "y"))
    second = identified(ID, LABEL._replace(name="notes"), notes._replace(name="more"))
    changing.batch(update(second, id="1", notes="new"), insert(second, "3", "c", "z"))
    assert changing.rows("id", "notes", "more") == [(1, "new", "x"), (2, "b", "y"), (3, "c", "z")]


@each_form
@pytest.mark.parametrize("transform", [(Transform.IDENTITY,), (Transform.BUCKET, 3), (Transform.TRUNCATE, 2)])
def test_a_column_of_partitions_gets_another_type_and_is_dropped_and_added_again(
    lake: Lake, transform: tuple[Any, ...]
) -> None:
    changing = Changing(lake)
    layout = TableLayout((PartitionField("size", *transform), PartitionField("label")))
    changing.deliveries.layouts = LakeLayouts((("hr.*", layout),))
    first = identified(ID, LABEL, Column("size", "integer", 23, True, 4))
    changing.batch(*(insert(first, str(number), "ab"[number % 2], str(number % 3)) for number in range(6)))
    texts = identified(ID, LABEL, Column("size", "text", 25, True, 4))
    changing.batch(insert(texts, "6", "c", "large"), update(texts, id="1", size="small"))
    changing.batch(update(texts, id="6", label="d"), Row(texts, IoType.DELETE, image("5")))
    rows = [(0, "a", "0"), (1, "b", "small"), (2, "a", "2"), (3, "b", "0"), (4, "a", "1"), (6, "d", "large")]
    assert changing.rows("id", "label", "size") == rows
    again = identified(ID, LABEL, Column("size", "bigint", 20, True, 9))
    changing.batch(insert(again, "7", "e", None))
    assert changing.rows("id", "label", "size") == [*((*row[:2], None) for row in rows), (7, "e", None)]


@pytest.mark.parametrize("lake", [TableForm.DELTA, TableForm.ICEBERG], indirect=True)
def test_a_table_loses_the_partitions_that_a_new_type_does_not_have(lake: Lake) -> None:
    changing = Changing(lake)
    layout = TableLayout((PartitionField("size", Transform.MONTH), PartitionField("label")))
    changing.deliveries.layouts = LakeLayouts((("hr.*", layout),))
    days = identified(ID, LABEL, Column("size", "date", 1082, True, 4))
    changing.batch(*(insert(days, str(number), "a", f"2026-0{number}-01") for number in range(1, 4)))
    texts = identified(ID, LABEL, Column("size", "text", 25, True, 4))
    changing.batch(insert(texts, "4", "b", "large"))
    changing.batch(update(texts, id="1", size="small"), Row(texts, IoType.DELETE, image("2")))
    assert changing.rows("id", "label", "size") == [(1, "a", "small"), (3, "a", "2026-03-01"), (4, "b", "large")]


@each_form
def test_columns_of_another_table_with_the_same_name_are_found_by_their_names(lake: Lake) -> None:
    """A table that was dropped and created again without a DDL record: its numbers mean other columns."""
    changing = Changing(lake)
    changing.batch(insert(OLD, "1", "a", "1"))
    other = (ID, PRICE._replace(number=2), Column("more", "text", 25, True, 3))
    again = ITEMS._replace(columns=tuple(each._replace(number=column_number(501, each.number)) for each in other))
    changing.batch(insert(again, "2", "2", "m"))
    assert changing.rows("id", "label", "price", "more") == [
        (1, "a", Decimal("1.00"), None),
        (2, None, Decimal("2.00"), "m"),
    ]
    assert "hr.items is another table than before at the source" in changing.deliveries.messages[0]
    changing.batch(insert(again, "3", "3", "n"))
    assert len([text for text in changing.deliveries.messages if "another table" in text]) == 1
