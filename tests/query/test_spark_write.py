"""Writing a data frame to a trail, and reading it back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from batches import ddl_row, ddl_statement
from trail_samples import EMPLOYEES, insert, random_transactions, trail_in, write_trail

from ggshell.query.splits import find_definitions
from ggshell.record.ddl import DdlStatement
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAME = ("csn", "xid", "commit_ts", "op", "io_type", "before_after", "trans_ind", "owner", "table", "columns", "before")


def load(spark: SparkSession, name: TrailName, **options: str) -> DataFrame:
    return spark.read.format("ggtrail").options(**options).load(str(name))


def rows_in_trail(name: TrailName) -> list[tuple[Any, ...]]:
    return [
        tuple(row[column] for column in (*SAME, "length", "audit_pos"))
        for seqno in name.sequences()
        for batch in read_columnar(name.file(seqno))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("definitions", [False, True])
def test_a_replayed_trail_equals_the_original(spark: SparkSession, tmp_path: Path, *, definitions: bool) -> None:
    name, other = trail_in(tmp_path), trail_in(tmp_path, "eb")
    write_trail(name, random_transactions(1, 120), max_bytes=6000)
    options = {"definitions": str(name)} if definitions else {}
    frame = load(spark, name).orderBy("csn", "seqno", "rba")
    frame.write.format("ggtrail").options(**options).mode("append").save(str(other))
    assert rows_in_trail(other) == rows_in_trail(name)
    (definition,) = find_definitions([other.file(0)], "hr.employees")
    assert (definition == EMPLOYEES) is definitions
    assert definition.key == (0,)
    assert [each.name for each in other.folder.iterdir() if "staged" in each.name] == []


def test_ddl_statements_are_written_back(spark: SparkSession, tmp_path: Path) -> None:
    name, other = trail_in(tmp_path), trail_in(tmp_path, "eb")
    statements = [
        ddl_row(ddl_statement("ALTER TABLE", "alter table hr.employees drop x")),
        ddl_row(DdlStatement("GRANT", "grant")),
    ]
    write_trail(name, [[insert(EMPLOYEES, id="1"), *statements], [insert(EMPLOYEES, id="2", name="Ada")]])
    load(spark, name).orderBy("csn", "seqno", "rba").write.format("ggtrail").mode("append").save(str(other))
    assert rows_in_trail(other) == rows_in_trail(name)


def test_transactions_that_the_trail_already_has_cannot_be_appended(spark: SparkSession, tmp_path: Path) -> None:
    name, other = trail_in(tmp_path), trail_in(tmp_path, "eb")
    write_trail(name, random_transactions(1, 20))
    frame = load(spark, name).orderBy("csn", "rba")
    frame.where("csn <= '00000000/0000000A'").write.format("ggtrail").mode("append").save(str(other))
    with pytest.raises(Exception, match="comes after CSN 00000000/0000000A"):
        frame.write.format("ggtrail").mode("append").save(str(other))
    frame.where("csn > '00000000/0000000A'").write.format("ggtrail").mode("append").save(str(other))
    assert [row[:1] for row in rows_in_trail(other)] == [row[:1] for row in rows_in_trail(name)]
    frame.where("csn = '00000000/00000003'").write.format("ggtrail").mode("overwrite").save(str(other))
    assert {row[0] for row in rows_in_trail(other)} == {"00000000/00000003"}


def test_an_unordered_frame_is_refused_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    name, other = trail_in(tmp_path), trail_in(tmp_path, "eb")
    write_trail(name, random_transactions(1, 20))
    frame = load(spark, name).orderBy("csn", ascending=False)
    with pytest.raises(Exception, match="sort the frame by csn, seqno and rba"):
        frame.write.format("ggtrail").mode("append").save(str(other))
    assert rows_in_trail(other) == []


def test_rows_of_a_table_become_inserts_with_types(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    moment = datetime(2026, 11, 21, 7, 30, 0, 250_000, tzinfo=UTC)
    rows = [
        (1, "Zoë", Decimal("12.50"), moment, True, date(2026, 2, 28), b"\x00\xff", 0.5),
        (2, None, None, None, None, None, None, None),
        (3, "", Decimal("-0.01"), moment, False, date(1999, 12, 31), b"", -1e300),
    ]
    kinds = "id int, name string, pay decimal(10,2), at timestamp, yes boolean, day date, raw binary, much double"
    frame = spark.createDataFrame(rows, kinds).coalesce(1)
    writer = frame.write.format("ggtrail").option("table", 'shop."Odd one"').option("key", "id")
    writer.option("rowsPerTransaction", "2").mode("append").save(str(name))
    back = load(spark, name, table='shop."Odd one"')
    assert back.dtypes == frame.dtypes
    assert [tuple(row) for row in back.orderBy("id").collect()] == [tuple(row) for row in frame.collect()]
    every = load(spark, name).select("csn", "trans_ind", "op").orderBy("rba").collect()
    assert [(row.trans_ind, row.op) for row in every] == [(0, "Insert"), (2, "Insert"), (3, "Insert")]
    assert len({row.csn for row in every}) == 2


@pytest.mark.parametrize(
    ("sql", "options", "message"),
    [
        ("select 1 as id", {}, "rows for a trail require columns, owner, table"),
        ("select 'Commit' as op, 'a' as owner, 'b' as table, map('x', 'y') as columns", {}, "is not a change of a row"),
        ("select 1 as id", {"table": "t.x", "key": "no"}, "the frame has no column no that the key"),
        ("select array(1) as a", {"table": "t.x"}, "which a table in a trail cannot have"),
        ("select 1 as id", {"table": "x"}, "is not a valid table name: write schema.table"),
        ("select 1 as id", {"table": "t.x", "megabytes": "0"}, "megabytes must be a number of at least 1"),
    ],
)
def test_frames_that_cannot_be_a_trail_are_refused(
    spark: SparkSession, tmp_path: Path, sql: str, options: dict[str, str], message: str
) -> None:
    name = trail_in(tmp_path)
    frame = spark.sql(sql.replace(" table,", ' "table",'))
    with pytest.raises(Exception, match=message):
        frame.write.format("ggtrail").options(**options).mode("append").save(str(name))
    assert rows_in_trail(name) == []
