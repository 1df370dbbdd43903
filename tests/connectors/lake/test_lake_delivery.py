"""Each batch is delivered exactly once to a lake of any form, even if a delivery ends between two of its writes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from batches import Row, ddl_row, ddl_statement
from deliveries import BEGIN, Deliveries, ProcessEnded, positions
from lakes import NOTES, PEOPLE, PLACES, Lake, image, key_update, person, read_table

from ggshell.connectors.lake.commits import CommitLog
from ggshell.connectors.lake.outages import errors_by_cause
from ggshell.connectors.lake.readable import table_names
from ggshell.connectors.lake.target import TableForm
from ggshell.errors import StoreError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName

pytestmark = pytest.mark.parametrize("lake", list(TableForm), indirect=True)


def place(number: int) -> Row:
    return Row(PLACES, IoType.INSERT, image(str(number), "2026-11-21"))


@pytest.mark.parametrize("comes_again", ["longer", "shorter"])
def test_a_delivery_interrupted_between_any_two_writes_is_completed(lake: Lake, comes_again: str) -> None:
    deliveries = Deliveries(lake)
    first = lake.write([person(1, "Ada", "1"), person(2, "Bo", "2"), place(1)])
    deliveries.batch(0, BEGIN, first)
    short = lake.write([key_update(PEOPLE, 2, 3), key_update(PEOPLE, 1, 2)], [key_update(PLACES, 1, 2), place(1)])
    long = lake.write(
        [key_update(PEOPLE, 3, 4), key_update(PEOPLE, 2, 3)],
        [key_update(PLACES, 2, 3), key_update(PLACES, 1, 2), place(1)],
    )
    before, after = (short, long) if comes_again == "longer" else (long, short)
    for writes in (0, 1, 2) if lake.form is TableForm.PARQUET else (0, 1, 1):  # Before the log, after it, after Places.
        with pytest.raises(ProcessEnded):
            deliveries.batch(1, first, before, writes)
    with pytest.raises(ProcessEnded):
        deliveries.batch(1, first, before, commits=False)
    deliveries.batch(1, first, after)
    deliveries.batch(1, first, after)
    if after != long:
        deliveries.batch(2, after, long)
    assert [row[:2] for row in lake.people()] == [(3, "Ada"), (4, "Bo")]
    assert [number for (number,) in lake.rows(PLACES, ["id"])] == [1, 2, 3]
    assert lake.logged() == positions(lake, BEGIN, long)
    assert lake.committed is not None
    assert lake.committed.position == long
    assert deliveries.counted == {"hr.people": 6, 'hr."Places"': 6}


def test_the_commit_after_a_crash_names_the_tables_that_already_had_their_rows(lake: Lake) -> None:
    """Regression: COMPARE and the maintenance did not find a table of which only the commit had been missing."""
    deliveries = Deliveries(lake)
    end = lake.write([person(1, "Ada", "1"), place(1)])
    with pytest.raises(ProcessEnded):
        deliveries.batch(0, BEGIN, end, commits=False)
    deliveries.batch(0, BEGIN, end)
    assert [str(name) for name in table_names(lake.target)] == ['hr."Places"', "hr.people"]


def test_a_column_added_later_appears_in_the_lake(lake: Lake) -> None:
    deliveries = Deliveries(lake)
    first = lake.write([person(1, "Ada", "1"), person(2, "Bo", "2"), Row(NOTES, IoType.INSERT, image("a note"))])
    deliveries.batch(0, BEGIN, first)
    wider = PEOPLE._replace(columns=(*PEOPLE.columns, Column("since", "date", 1082)))
    second = lake.write([Row(wider, IoType.INSERT, image("3", "Cy", "3", "2026-11-21"))], [key_update(wider, 1, 4)])
    deliveries.batch(1, first, second)
    found = lake.rows(PEOPLE, ("id", "name", "since"))
    assert [(*row[:2], str(row[2])) for row in found] == [
        (2, "Bo", "None"),
        (3, "Cy", "2026-11-21"),
        (4, "Ada", "None"),
    ]
    assert deliveries.messages == [
        "hr.notes has no key: the lake contains its changes in the log, but not its current state."
    ]


def test_ddl_statements_are_in_the_log_and_are_no_rows_of_their_table(lake: Lake) -> None:
    deliveries = Deliveries(lake)
    wider = PEOPLE._replace(columns=(*PEOPLE.columns, Column("since", "date", 1082)))
    alter = ddl_row(ddl_statement("ALTER TABLE", "alter table hr.people add since date", "hr", "people"))
    first = lake.write([person(1, "Ada", "1"), alter])
    deliveries.batch(0, BEGIN, first)
    second = lake.write([Row(wider, IoType.INSERT, image("2", "Bo", "3", "2026-11-21")), alter])
    deliveries.batch(1, first, second)
    assert [row[:2] for row in lake.people()] == [(1, "Ada"), (2, "Bo")]
    assert len(lake.logged()) == 4


def test_a_timestamp_keeps_its_time_zone_for_every_reader(lake: Lake) -> None:
    columns = (
        Column("id", "integer"),
        Column("at", "timestamp with time zone"),
        Column("local", "timestamp without time zone"),
    )
    table = TableDefinition(TableName("hr", "moments"), columns, (0,))
    values = ("1", "2026-11-21 10:00:00.123456+00", "2026-11-21 10:00:00.123456")
    Deliveries(lake).batch(0, BEGIN, lake.write([Row(table, IoType.INSERT, image(*values))]))
    moment, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    read = read_table(lake.target, table.name)
    if read is None:
        files = [*lake.folder.glob("current/*/*/*.parquet"), *lake.folder.glob("log/**/*.parquet")]
        schemas = [pq.read_schema(file) for file in files]
        assert {schema.field("at").type for schema in schemas if "at" in schema.names} == {moment}
        assert {schema.field("local").type for schema in schemas if "local" in schema.names} == {local}
        assert {schema.field("commit_ts").type for schema in schemas if "commit_ts" in schema.names} == {moment}
    else:
        assert (read.schema.field("at").type, read.schema.field("local").type) == (moment, local)
    ((at, without),) = lake.rows(table, ("at", "local"))
    assert at == datetime(2026, 11, 21, 10, 0, 0, 123456, UTC)
    assert without == datetime(2026, 11, 21, 10, 0, 0, 123456)


def test_only_transactions_from_the_start_csn_on_are_delivered(lake: Lake) -> None:
    deliveries = Deliveries(lake)
    deliveries.least = Csn(3)
    first = lake.write([person(1, "Ada", "1")], [person(2, "Bo", "2")])
    deliveries.batch(0, BEGIN, first)
    assert lake.committed is None
    second = lake.write([person(3, "Cy", "3")], [person(4, "Di", "4")])
    deliveries.batch(1, BEGIN, second)
    assert [row[0] for row in lake.people()] == [3, 4]
    assert len(lake.logged()) == 2


def test_a_folder_of_another_form_is_refused(lake: Lake) -> None:
    Deliveries(lake).batch(0, BEGIN, lake.write([person(1, "Ada", "1")]))
    for form in set(TableForm) - {lake.form}:
        with pytest.raises(StoreError, match=f"contains {lake.form} tables of LAKE, but TARGET specifies {form}"):
            CommitLog(lake.target._replace(form=form), "LAKE").latest()


def test_a_table_whose_files_are_removed_is_reported(lake: Lake) -> None:
    deliveries = Deliveries(lake)
    first = lake.write([person(1, "Ada", "1")])
    deliveries.batch(0, BEGIN, first)
    shutil.rmtree(lake.folder / "current")
    lake.is_whole = False
    second = lake.write([person(2, "Bo", "2")])
    causes = r"lacks a file of its tables|no longer contains table hr\.people"
    with pytest.raises(StoreError, match=causes), errors_by_cause(lake.target):
        deliveries.batch(1, first, second)
