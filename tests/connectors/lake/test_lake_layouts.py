"""LAKETABLE: partitions, sorted files, compression, metadata columns, soft deletes and history, for each form and reader."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from batches import Row
from deliveries import BEGIN, Deliveries, ProcessEnded
from lakes import Lake, image
from readers import every_reader_agrees

from ggshell.clock import FakeClock
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.readable import readable_table
from ggshell.connectors.lake.target import TableForm
from ggshell.errors import ApplyError
from ggshell.home.maintenance import MaintenanceSettings
from ggshell.object_stores import open_place
from ggshell.parameters.lake_tables import (
    Compression,
    Deletes,
    LakeLayouts,
    Metadata,
    PartitionField,
    TableLayout,
    Transform,
)
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = TableDefinition(
    TableName("hr", "sales"),
    (
        Column("id", "integer", 23, False, 1),
        Column("region", "text", 25, True, 2),
        Column("sold", "timestamp without time zone", 1114, True, 3),
    ),
    (0,),
)
DAYS = ("2026-11-25 23:59:59", "2026-11-26 00:00:00")
each_form = pytest.mark.parametrize("lake", list(TableForm), indirect=True)
PARTITIONS = (
    PartitionField("region"),
    PartitionField("sold", Transform.DAY),
    PartitionField("id", Transform.BUCKET, 2),
    PartitionField("region", Transform.TRUNCATE, 1),
)


def sale(number: int, region: str | None, sold: str | None = DAYS[0]) -> Row:
    return Row(SALES, IoType.INSERT, image(str(number), region, sold))


def region_of(number: int, region: str) -> Row:
    return Row(SALES, IoType.FIELD_COMP, encode_image([(0, str(number).encode()), (1, region.encode())]))


def deleted(number: int) -> Row:
    return Row(SALES, IoType.DELETE, encode_image([(0, str(number).encode())]))


def moved(old: int, new: int) -> Row:
    parts = (encode_image([(0, str(number).encode())]) for number in (old, new))
    return Row(SALES, IoType.KEY_FIELD_COMP, join_key_update(*parts))


TRUNCATED = Row(SALES, IoType.PURGE_DATA, b"")


class Sales:
    """Delivers one batch of transactions after another, with a layout."""

    def __init__(self, lake: Lake, layout: TableLayout) -> None:
        self.deliveries = Deliveries(lake)
        self.deliveries.layouts = LakeLayouts((("hr.*", layout),))
        self.lake = lake
        self._end, self._number = BEGIN, 0

    def batch(self, *transactions: list[Row], is_repeated: bool = False) -> None:
        end = self.lake.write(*transactions)
        if is_repeated:
            with pytest.raises(ProcessEnded):
                self.deliveries.batch(self._number, self._end, end, commits=False)
        self.deliveries.batch(self._number, self._end, end)
        self._end, self._number = TrailPosition(*end), self._number + 1

    def agree(self, columns: list[str], *rows: tuple[Any, ...]) -> None:
        every_reader_agrees(self.lake.target, SALES.name, columns, list(rows))


def seconds(csn: int) -> datetime:
    """The commit time of a transaction in these trails."""
    return datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(microseconds=csn * 1000)


@each_form
def test_rows_are_found_and_replaced_in_every_partition(lake: Lake) -> None:
    layout = TableLayout(PARTITIONS, ("region", "id"), compression=Compression.SNAPPY)
    sales = Sales(lake, layout)
    sales.batch([sale(number, ("eu", "it's / %", None)[number % 3], DAYS[number % 2]) for number in range(60)])
    rows = {
        number: (("eu", "it's / %", None)[number % 3], datetime.fromisoformat(DAYS[number % 2])) for number in range(60)
    }
    sales.batch([region_of(1, "eu"), moved(2, 200), deleted(3)], [sale(61, "us", None)], is_repeated=True)
    rows[1], rows[200], rows[61] = ("eu", rows[1][1]), rows.pop(2), ("us", None)
    del rows[3]
    sales.agree(["id", "region", "sold"], *((number, *values) for number, values in rows.items()))
    files = readable_table(lake.target, str(SALES.name)).files
    assert len(files) >= 10  # regions by days by buckets
    for each in files:
        place = open_place(each.location)
        with place.system.open_input_file(place.path) as stream:
            file = pq.ParquetFile(stream)
            assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
            found = file.read(["id"])["id"].to_pylist()
            assert found == sorted(found) or lake.form is TableForm.PARQUET


HIDDEN = TableDefinition(SALES.name, (SALES.columns[0], Column("_region", "text"), Column(".sold", "date")), (0,))


def hidden(number: int, region: str, sold: str) -> Row:
    return Row(HIDDEN, IoType.INSERT, image(str(number), region, sold))


@each_form
def test_partition_columns_can_have_the_names_of_hidden_files(lake: Lake, spark: SparkSession) -> None:
    """Readers of folders take such names for those of files that a program has not finished, or that describe others."""
    fields = (
        PartitionField("_region"),
        PartitionField(".sold", Transform.MONTH),
        PartitionField("_commit_time", Transform.DAY),
        PartitionField("_deleted"),
    )
    sales = Sales(lake, TableLayout(fields, metadata=(Metadata.COMMITTIME,), deletes=Deletes.MARKED))
    sales.batch([hidden(number, "ab"[number % 2], f"2026-11-0{number}") for number in range(1, 4)])
    sales.batch([hidden(4, "_c", "2026-12-01")], [deleted(3)])
    days = [date(2026, 11, number) for number in range(1, 4)]
    rows = [(1, "b", days[0], False), (2, "a", days[1], False), (3, "b", days[2], True)]
    rows.append((4, "_c", date(2026, 12, 1), False))
    sales.agree(["id", "_region", ".sold", "_deleted"], *rows)
    if lake.form is TableForm.PARQUET:
        _readers_of_folders_agree(lake, spark, rows)


def _readers_of_folders_agree(lake: Lake, spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    (folder,) = {
        each.location.partition("/%5Fregion=")[0] for each in readable_table(lake.target, str(SALES.name)).files
    }
    arrow = ds.dataset(folder).to_table().select(["id", "_region", ".sold", "_deleted"])
    frame = spark.read.parquet(folder).select("id", "_region", "`.sold`", "_commit_time_day")
    found = duckdb.sql(f"""SELECT id, _region, ".sold", _deleted FROM read_parquet('{folder}/**/*.parquet')""")
    assert sorted(tuple(row.values()) for row in arrow.to_pylist()) == rows
    assert sorted(map(tuple, frame.collect())) == [(*row[:3], date(2023, 11, 14)) for row in rows]
    assert sorted(found.fetchall()) == rows


@each_form
def test_a_history_can_be_partitioned_by_the_mark_of_its_present_versions(lake: Lake) -> None:
    sales = Sales(lake, TableLayout((PartitionField("_current"),), deletes=Deletes.CLOSED))
    sales.batch([sale(1, "a"), sale(2, "a")])
    sales.batch([region_of(1, "b")])
    sales.agree(["id", "region", "_current"], (1, "a", False), (1, "b", True), (2, "a", True))


FILES = TableDefinition(SALES.name, (SALES.columns[0], Column("content", "bytea", 17)), (0,))


def content(number: int, value: str) -> Row:
    return Row(FILES, IoType.INSERT, image(str(number), value))


@each_form
def test_binary_values_can_be_in_buckets_and_those_of_iceberg_in_partitions(lake: Lake) -> None:
    values = ["\\x", "\\xff00", "\\xc3a9", "\\x80"]
    fields = (PartitionField("content", Transform.BUCKET, 2), PartitionField("content"))
    sales = Sales(lake, TableLayout(fields if lake.form is TableForm.ICEBERG else fields[:1]))
    sales.batch([content(number, value) for number, value in enumerate(values)])
    sales.batch([content(4, "\\xff00"), deleted(0)])
    rows = [*enumerate(bytes.fromhex(value[2:]) for value in values)][1:]
    sales.agree(["id", "content"], *rows, (4, b"\xff\x00"))


@pytest.mark.parametrize("lake", [TableForm.PARQUET, TableForm.DELTA], indirect=True)
def test_a_binary_column_cannot_be_a_partition_where_its_value_is_a_text(lake: Lake) -> None:
    with pytest.raises(ApplyError, match=r"PARTITIONBY \(content\): a column of type binary"):
        Sales(lake, TableLayout((PartitionField("content"),))).batch([content(1, "\\xff00")])


@pytest.mark.parametrize("lake", [TableForm.PARQUET, TableForm.DELTA], indirect=True)
@pytest.mark.parametrize("later", [False, True], ids=["from the beginning", "later"])
def test_a_column_with_the_name_of_a_partition_is_refused(lake: Lake, later: bool) -> None:
    sales = Sales(lake, TableLayout((PartitionField("region", Transform.BUCKET, 2),)))
    name = PartitionField("region", Transform.BUCKET, 2).name
    wider = SALES._replace(columns=(*SALES.columns, Column(name, "text", 25, True, 9)))
    if later:
        sales.batch([sale(1, "eu")])
    with pytest.raises(ApplyError, match=f"the source has a column {name}"):
        sales.batch([Row(wider, IoType.INSERT, image("2", "us", DAYS[0], "x"))])


@pytest.mark.parametrize("lake", [TableForm.DELTA, TableForm.ICEBERG], indirect=True)
def test_a_compaction_keeps_partitions_and_order(lake: Lake) -> None:
    lake.home.parameters("lake").write_text(
        "REPLICAT lake\nLAKETABLE hr.*, PARTITIONBY (region), CLUSTERBY (sold, id)\nMAP hr.*, TARGET hr.*;\n"
    )
    sales = Sales(lake, TableLayout((PartitionField("region"),), ("sold", "id")))
    for number in range(4):
        sales.batch([sale(each, "ab"[each % 2], DAYS[each % 3 % 2]) for each in range(number * 10, number * 10 + 10)])
    maintain(lake.home, "LAKE", lake.target, MaintenanceSettings(), FakeClock(4_000_000_000_000_000))
    sales.batch([deleted(0)])
    files = readable_table(lake.target, str(SALES.name)).files
    assert len(files) == 2
    for each in files:
        rows = pq.ParquetFile(each.location.removeprefix("file://")).read(["sold", "id"]).to_pylist()
        assert rows == sorted(rows, key=lambda row: (row["sold"], row["id"]))
    sales.agree(["id"], *((number,) for number in range(1, 40)))


@each_form
def test_metadata_columns_describe_the_last_change_of_a_row(lake: Lake) -> None:
    sales = Sales(lake, TableLayout(metadata=tuple(Metadata)))
    sales.batch([sale(1, "a"), sale(2, "b")], [region_of(1, "c")], [moved(2, 3)])
    sales.batch([region_of(3, "d")])
    sales.agree(
        ["id", "region", "_csn", "_commit_time", "_op", "_xid"],
        (1, "c", "00000000/00000002", seconds(2), "UPDATE", "702"),
        (3, "d", "00000000/00000004", seconds(4), "UPDATE", "704"),
    )


@each_form
def test_soft_deletes_keep_deleted_rows(lake: Lake) -> None:
    sales = Sales(lake, TableLayout(deletes=Deletes.MARKED, metadata=(Metadata.OP,)))
    sales.batch([sale(number, "a") for number in range(1, 5)], [deleted(1)])
    sales.batch([deleted(2), deleted(3)], [sale(3, "again")])
    columns = ["id", "region", "_op", "_deleted"]
    rows = [
        (1, "a", "DELETE", True),
        (2, "a", "DELETE", True),
        (3, "again", "INSERT", False),
        (4, "a", "INSERT", False),
    ]
    sales.agree(columns, *rows)
    sales.batch([TRUNCATED, sale(5, "new")])
    sales.agree(columns, *((*row[:2], "DELETE", True) for row in rows), (5, "new", "INSERT", False))


@each_form
def test_history_has_every_version_with_its_validity(lake: Lake) -> None:
    sales = Sales(lake, TableLayout(deletes=Deletes.CLOSED))
    sales.batch([sale(1, "a"), sale(2, "a")], [region_of(1, "b")], [region_of(1, "never"), region_of(1, "c")])
    sales.batch([region_of(2, "b")], [deleted(1)], [sale(1, "back"), sale(3, "x")], [moved(3, 4)], is_repeated=True)
    columns = ["id", "region", "_valid_from", "_valid_to", "_current"]
    t = [seconds(number) for number in range(9)]
    closed = [
        (1, "a", t[1], t[2], False),
        (1, "b", t[2], t[3], False),
        (1, "c", t[3], t[5], False),
        (2, "a", t[1], t[4], False),
        (3, "x", t[6], t[7], False),
    ]
    present = [(1, "back", t[6], None, True), (2, "b", t[4], None, True), (4, "x", t[7], None, True)]
    sales.agree(columns, *closed, *present)
    sales.batch([TRUNCATED, sale(2, "after")])
    ended = [(*row[:3], t[8], False) for row in present]
    sales.agree(columns, *closed, *ended, (2, "after", t[8], None, True))


@each_form
def test_an_existing_table_keeps_its_partitions_which_is_said_once(lake: Lake) -> None:
    Sales(lake, TableLayout(PARTITIONS)).batch([sale(1, "a")])
    same, other = TableLayout(PARTITIONS[::-1]), TableLayout((PartitionField("id", Transform.BUCKET, 4),))
    there = "(region, DAY (sold), BUCKET (id, 2), TRUNCATE (region, 1))"
    text = f"PARTITIONBY does not apply to hr.sales, which exists in the lake: it stays partitioned by {there}."
    for number, layout in enumerate((same, TableLayout(), other), 1):
        deliveries = Deliveries(lake)
        deliveries.layouts = LakeLayouts((("hr.*", layout),))
        for batch in (2 * number, 2 * number + 1):
            begin = TrailPosition(*lake.end)
            deliveries.persistent_batch(batch, begin, lake.write([sale(batch, "b")]), lambda: None)
        assert deliveries.messages == ([text] if layout is other and lake.form is not TableForm.PARQUET else [])


@each_form
@pytest.mark.parametrize("deletes", [Deletes.MARKED, Deletes.CLOSED])
def test_rows_that_are_older_than_a_mark_of_the_layout_have_its_value(lake: Lake, deletes: Deletes) -> None:
    sales = Sales(lake, TableLayout())
    sales.batch([sale(number, "a") for number in range(1, 5)], [deleted(4)])
    sales.deliveries.layouts = LakeLayouts((("hr.*", TableLayout(deletes=deletes)),))
    sales.batch([region_of(1, "b")], [deleted(2)])
    if deletes is Deletes.MARKED:
        sales.agree(["id", "region", "_deleted"], (1, "b", False), (2, "a", True), (3, "a", False))
        sales.batch([TRUNCATED])
        sales.agree(["id", "_deleted"], *((number, True) for number in (1, 2, 3)))
    else:
        rows = [(1, "a", False), (1, "b", True), (2, "a", False)]
        sales.agree(["id", "region", "_current"], *rows, (3, "a", True))
        sales.batch([deleted(3)])
        sales.agree(["id", "region", "_current"], *rows, (3, "a", False))


@each_form
def test_what_a_layout_cannot_have_is_refused(lake: Lake) -> None:
    for layout in (
        TableLayout((PartitionField("missing"),)),
        TableLayout((PartitionField("region", Transform.DAY),)),
    ):
        with pytest.raises(ApplyError):
            Sales(lake, layout).batch([sale(1, "a")])


@pytest.mark.parametrize("is_partition", [True, False])
@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_the_readers_of_delta_find_rows_by_any_characters(lake: Lake, *, is_partition: bool) -> None:
    """Of the last character, the bounds of a file have the most that is allowed."""
    from deltalake import DeltaTable, QueryBuilder

    regions = ["\U00020bb7\u91ce\u5bb6", "\U0001f600", "\u00e9\u2028\x7f\\", '"', "\U0010ffff" * 256]
    sales = Sales(lake, TableLayout((PartitionField("region"),) if is_partition else ()))
    for number, region in enumerate(regions):
        sales.batch([sale(number, region), sale(number + 10, region)])
        sales.batch([deleted(number + 10)])
    sales.agree(["id", "region"], *enumerate(regions))
    builder = QueryBuilder().register("sales", DeltaTable(f"{lake.target.location}/current/{SALES.name}"))
    for number, region in enumerate(regions):
        found = pa.table(builder.execute(f"SELECT id FROM sales WHERE region = '{region}'"))
        assert found["id"].to_pylist() == [number], region


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_the_readers_of_delta_return_the_change_feed(lake: Lake) -> None:
    from deltalake import DeltaTable

    sales = Sales(lake, TableLayout((PartitionField("region"),), feed=True))
    sales.batch([sale(1, "a"), sale(2, "a")])
    sales.batch([region_of(1, "b"), deleted(2), sale(3, "a")])
    sales.batch([TRUNCATED])
    table = DeltaTable(f"{lake.target.location}/current/{SALES.name}")
    feed = pa.table(table.load_cdf(starting_version=0)).to_pylist()
    found = sorted((row["_commit_version"], row["id"], row["region"], row["_change_type"]) for row in feed)
    assert found == [
        (0, 1, "a", "insert"),
        (0, 2, "a", "insert"),
        (1, 1, "a", "update_preimage"),
        (1, 1, "b", "update_postimage"),
        (1, 2, "a", "delete"),
        (1, 3, "a", "insert"),
        (2, 1, "b", "delete"),
        (2, 3, "a", "delete"),
    ]


@each_form
@pytest.mark.parametrize("together", [False, True], ids=["in several batches", "in one batch"])
def test_a_truncate_marks_all_rows_that_exist_then(lake: Lake, together: bool) -> None:
    """Rows of earlier batches, of this one, and changes just before; a row that was deleted earlier keeps its own values."""
    sales = Sales(lake, TableLayout(metadata=(Metadata.OP, Metadata.CSN), deletes=Deletes.MARKED))
    sales.batch([sale(1, "eu"), sale(2, "eu"), sale(3, "eu")])
    batches = [
        [region_of(1, "us"), deleted(2), sale(6, "us")],
        [TRUNCATED, sale(7, "us")],
        [sale(1, "asia"), TRUNCATED],
    ]
    for each in [batches] if together else [[one] for one in batches]:
        sales.batch(*each)
    sales.agree(
        ["id", "region", "_deleted", "_op", "_csn"],
        (1, "asia", True, "DELETE", "00000000/00000004"),
        (2, "eu", True, "DELETE", "00000000/00000002"),
        (3, "eu", True, "DELETE", "00000000/00000003"),
        (6, "us", True, "DELETE", "00000000/00000003"),
        (7, "us", True, "DELETE", "00000000/00000004"),
    )
