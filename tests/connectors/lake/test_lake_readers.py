"""All readers of a lake see the same rows: after inserts, updates, deletes, key changes, new columns and maintenance."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from deliveries import BEGIN, Deliveries
from lakes import PEOPLE, Lake, image, key_update, person
from readers import Rows, every_reader_agrees

from ggshell.clock import FakeClock
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.target import TableForm
from ggshell.home.maintenance import MaintenanceSettings
from ggshell.record.operation import IoType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.parametrize("lake", list(TableForm), indirect=True)


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
