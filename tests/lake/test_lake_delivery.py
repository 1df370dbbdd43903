"""Batches into a lake of any form, each once: a delivery that ends between any two of its writes is gone on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from batches import Row
from deliveries import BEGIN, Deliveries, Ended
from lakes import NOTES, PEOPLE, PLACES, Lake, image, moved, person

from ggshell.errors import StoreError
from ggshell.lake.commits import CommitLog
from ggshell.lake.target import Form
from ggshell.record.definition import Column
from ggshell.record.operation import IoType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.parametrize("lake", list(Form), indirect=True)


def place(number: int) -> Row:
    return Row(PLACES, IoType.INSERT, image(str(number), "2026-11-21"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("comes_again", ["longer", "shorter"])
def test_a_delivery_may_end_between_any_two_writes(lake: Lake, spark: SparkSession, comes_again: str) -> None:
    deliveries = Deliveries(lake, spark)
    first = lake.write([person(1, "Ada", "1"), person(2, "Bo", "2"), place(1)])
    deliveries.batch(0, BEGIN, first)
    short = lake.write([moved(PEOPLE, 2, 3), moved(PEOPLE, 1, 2)], [moved(PLACES, 1, 2), place(1)])
    long = lake.write([moved(PEOPLE, 3, 4), moved(PEOPLE, 2, 3)], [moved(PLACES, 2, 3), moved(PLACES, 1, 2), place(1)])
    before, after = (short, long) if comes_again == "longer" else (long, short)
    for writes in (0, 1, 2) if lake.form is Form.PARQUET else (0, 1, 1):  # before the log, behind it, behind Places
        with pytest.raises(Ended):
            deliveries.batch(1, first, before, writes)
    with pytest.raises(Ended):
        deliveries.batch(1, first, before, commits=False)
    deliveries.batch(1, first, after)
    deliveries.batch(1, first, after)
    if after != long:
        deliveries.batch(2, after, long)
    assert [row[:2] for row in lake.people()] == [(3, "Ada"), (4, "Bo")]
    assert [number for (number,) in lake.rows(PLACES, ["id"])] == [1, 2, 3]
    assert lake.logged() == [row["rba"] for row in deliveries.rows(BEGIN, long).orderBy("rba").collect()]
    assert lake.committed is not None
    assert lake.committed.position == long
    assert deliveries.counted == {"hr.people": 6, 'hr."Places"': 6}


@pytest.mark.timeout(900)
def test_a_column_that_comes_in_mid_stream_is_in_the_lake(lake: Lake, spark: SparkSession) -> None:
    deliveries = Deliveries(lake, spark)
    first = lake.write([person(1, "Ada", "1"), person(2, "Bo", "2"), Row(NOTES, IoType.INSERT, image("a note"))])
    deliveries.batch(0, BEGIN, first)
    wider = PEOPLE._replace(columns=(*PEOPLE.columns, Column("since", "date", 1082)))
    second = lake.write([Row(wider, IoType.INSERT, image("3", "Cy", "3", "2026-11-21"))], [moved(wider, 1, 4)])
    deliveries.batch(1, first, second)
    found = lake.rows(PEOPLE, ("id", "name", "since"))
    assert [(*row[:2], str(row[2])) for row in found] == [
        (2, "Bo", "None"),
        (3, "Cy", "2026-11-21"),
        (4, "Ada", "None"),
    ]
    assert deliveries.told == ["hr.notes has no key: its changes are in the log, and it has no current state."]


def test_a_folder_of_another_form_is_refused(lake: Lake, spark: SparkSession) -> None:
    Deliveries(lake, spark).batch(0, BEGIN, lake.write([person(1, "Ada", "1")]))
    for form in set(Form) - {lake.form}:
        with pytest.raises(StoreError, match=f"holds {lake.form} tables of LAKE, TARGET says {form}"):
            CommitLog(lake.target._replace(form=form), "LAKE").latest()
