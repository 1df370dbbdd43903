"""All readers of a lake see the same rows: after inserts, updates, deletes, key changes, new columns and maintenance."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from deliveries import BEGIN, Deliveries
from lakes import PEOPLE, Lake, image, key_update, person
from readers import Rows, every_reader_agrees
from test_lake_schema import ID, ITEMS, LABEL, PRICE, SIZE, Changing, insert, update

from ggshell.clock import FakeClock
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.target import TableForm
from ggshell.home.maintenance import MaintenanceSettings
from ggshell.record.definition import Column
from ggshell.record.operation import IoType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

each_form = pytest.mark.parametrize("lake", list(TableForm), indirect=True)


@each_form
def test_every_reader_agrees_after_changes_and_maintenance(lake: Lake, spark: SparkSession) -> None:
    from batches import Row

    deliveries = Deliveries(lake, spark)
    names = {number: f"name {number}" for number in range(300)}

    def agree() -> None:
        rows: Rows = [(number, name, Decimal("1.00")) for number, name in names.items()]
        every_reader_agrees(lake.target, PEOPLE.name, ["id", "name", "pay"], rows, spark)

    first = lake.write([person(number, name, "1") for number, name in names.items()])
    deliveries.batch(0, BEGIN, first)
    agree()
    second = lake.write(
        [Row(PEOPLE, IoType.FIELD_COMP, image("7", None, "1")), Row(PEOPLE, IoType.DELETE, image("8"))],
        [key_update(PEOPLE, 9, 900), person(8_000, "odd 'name'", "1")],
    )
    deliveries.batch(1, first, second)
    names[7], names[900] = None, names.pop(9)  # type: ignore[assignment]
    del names[8]
    names[8_000] = "odd 'name'"
    agree()
    if lake.form is not TableForm.PARQUET:
        maintain(lake.home, "LAKE", lake.target, MaintenanceSettings(), FakeClock(4_000_000_000_000_000))
        agree()
    third = lake.write([Row(PEOPLE, IoType.DELETE, image("0"))])
    deliveries.batch(2, second, third)
    del names[0]
    agree()


@each_form
def test_every_reader_agrees_after_columns_and_keys_have_changed(lake: Lake, spark: SparkSession) -> None:
    changing = Changing(lake)
    changing.batch(insert(ITEMS, "1", "a", "1", "1"), insert(ITEMS, "2", "b", "2", "2"))
    name, wide = LABEL._replace(name="title"), SIZE._replace(type_name="double precision")
    renamed = ITEMS._replace(columns=(ID, name, PRICE, wide, Column("note", "text", 25, True, 5)))
    changing.batch(insert(renamed, "3", "c", "3", "0.1", "new"), update(renamed, id="1", price="9"))
    as_text = PRICE._replace(type_name="text")
    texts = renamed._replace(columns=(ID, name, as_text, wide, renamed.columns[4]))
    changing.batch(insert(texts, "4", "d", "four", "4", "text"))
    by_price = texts._replace(key=(0, 2))
    changing.batch(update(by_price, id="3", price="3.00", note="changed"))
    for columns in (("id", "size", "price"), ("id", "note", "title")):
        rows = changing.rows(*columns)
        assert len(rows) == 4
        every_reader_agrees(lake.target, ITEMS.name, list(columns), rows, spark)
