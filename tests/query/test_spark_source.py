"""The data source ``ggtrail`` in a real session: the same rows as the trail's own reader, whatever is left out."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trail_samples import BEGIN, EMPLOYEES, ODD, delete, insert, random_transactions, trail_in, update, write_trail

from ggshell.clock import to_datetime
from ggshell.query.trail_read import COLUMNS
from ggshell.trail import fileheader
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName
from ggshell.trail.writer import WriterOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, name: TrailName | str, **options: str) -> DataFrame:
    return spark.read.format("ggtrail").options(**options).load(str(name))


def plain(row: Any) -> tuple[Any, ...]:
    return tuple(
        tuple(sorted(value.items()))
        if isinstance(value, dict)
        else str(value)
        if isinstance(value, datetime)
        else value
        for value in row
    )


def rows_in_trail(name: TrailName) -> list[dict[str, Any]]:
    """Every row, read by the trail's own columnar reader."""
    found = []
    for seqno in name.sequences():
        for batch in read_columnar(name.file(seqno)):
            found += batch.to_pylist()
    return found


def test_every_column_of_every_row_is_read(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 60), max_bytes=4000)
    assert len(name.sequences()) > 2
    rows = [row.asDict() for row in load(spark, name).orderBy("seqno", "rba").collect()]
    expected = rows_in_trail(name)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        for column in COLUMNS:
            if column in ("columns", "before", "tokens"):
                assert row[column] == dict(wanted[column])
            elif column in ("commit_ts", "io_time"):
                assert row[column].astimezone(UTC) == wanted[column].astimezone(UTC)
            else:
                assert row[column] == wanted[column], column


@pytest.mark.parametrize("kind", ["trail", "file", "folder", "glob", "several"])
def test_a_path_names_one_file_or_several_or_a_trail(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    name, other = trail_in(tmp_path), trail_in(tmp_path, "eb")
    write_trail(name, random_transactions(1, 20), max_bytes=3000)
    write_trail(other, random_transactions(2, 5))
    paths = {
        "trail": (str(name), [name]),
        "file": (str(other.file(0)), [other]),
        "folder": (str(name.folder), [name, other]),
        "glob": (f"{name.folder}/e[ab]*", [name, other]),
        "several": (f"{name}, {other}", [name, other]),
    }
    path, trails = paths[kind]
    assert load(spark, path).count() == sum(len(rows_in_trail(each)) for each in trails)


def test_a_large_file_is_divided_among_tasks_between_transactions(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(3, 200))
    frame = load(spark, name, splitBytes="5KB")
    assert frame.selectExpr("spark_partition_id()").distinct().count() >= 5
    rows = sorted((row.seqno, row.rba) for row in frame.select("seqno", "rba").collect())
    assert rows == [(row["seqno"], row["rba"]) for row in rows_in_trail(name)]
    shared = frame.selectExpr("csn", "spark_partition_id() as part").distinct().groupBy("csn").count()
    assert shared.where("count > 1").count() == 0


CONDITIONS = [
    "op = 'Insert'",
    "op in ('Delete', 'GGSKeyFieldComp')",
    "owner = 'hr' and table = 'notes'",
    "table = 'employees' and op = 'Insert'",
    "owner = 'nobody'",
    "csn = '00000000/00000014'",
    "csn >= '00000000/00000014' and csn < '00000000/00000020'",
    "csn > '00000000/0000003'",
    "csn in ('00000000/00000003', '00000000/00000030')",
    "commit_ts >= timestamp_micros(1700000000020000) and commit_ts < timestamp_micros(1700000000030000)",
    "io_type = 5",
    "not (op = 'Insert')",
    "op = 'Insert' or table = 'notes'",
    "columns['id'] = '7'",
    "op is null",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_remove_only_rows_that_do_not_match(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, condition: str
) -> None:
    """The same rows must result with and without push-down."""
    name = trail_in(tmp_path_factory.getbasetemp() / "conditions")
    if not name.sequences():
        write_trail(name, random_transactions(4, 80), max_bytes=5000)
    pushed = load(spark, name, pushdown="true").where(condition).select("seqno", "rba").collect()
    whole = load(spark, name).localCheckpoint().where(condition).select("seqno", "rba").collect()
    assert sorted(map(tuple, pushed)) == sorted(map(tuple, whole))


def test_files_without_matching_rows_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(5, 60), max_bytes=4000)
    last = name.file(name.sequences()[-1])
    content = bytearray(last.read_bytes())
    content[-20] ^= 0xFF  # Reading it would be an error.
    last.write_bytes(content)
    early = load(spark, name, pushdown="true").where(f"commit_ts < timestamp_micros({BEGIN + 5000})")
    assert early.count() == len(
        [row for row in rows_before_last_file(name) if row["commit_ts"] < to_datetime(BEGIN + 5000)]
    )
    with pytest.raises(Exception, match="damaged"):
        load(spark, name).count()


def rows_before_last_file(name: TrailName) -> list[dict[str, Any]]:
    """The rows of all files of a trail but the last."""
    return [
        row for seqno in name.sequences()[:-1] for batch in read_columnar(name.file(seqno)) for row in batch.to_pylist()
    ]


def test_a_table_has_its_own_columns_with_types(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    hired = {"id": "7", "name": "Zoë", "salary": "12.50", "hired": "2026-11-21 08:00:00.5+01", "active": "t"}
    write_trail(
        name,
        [
            [insert(EMPLOYEES, **hired), insert(ODD, **{"a b": "-3", "t": "2026-02-28"})],
            [update(EMPLOYEES, id="7", salary=None)],
            [delete(EMPLOYEES, id="7")],
        ],
    )
    frame = load(spark, name, table="hr.employees", **{"with": "op,csn"})
    assert frame.dtypes == [
        ("op", "string"),
        ("csn", "string"),
        ("id", "int"),
        ("name", "string"),
        ("salary", "decimal(10,2)"),
        ("hired", "timestamp"),
        ("active", "boolean"),
    ]
    first, second, third = frame.orderBy("csn").collect()
    assert (first.op, first.id, first.name, first.salary, first.active) == ("Insert", 7, "Zoë", Decimal("12.50"), True)
    assert first.hired.astimezone(UTC) == datetime(2026, 11, 21, 7, 0, 0, 500_000, tzinfo=UTC)
    assert (second.op, second.id, second.name, second.salary) == ("FieldComp", 7, None, None)
    assert (third.op, third.id) == ("Delete", 7)
    (odd,) = load(spark, name, table='"Shop"."Order lines"').collect()
    assert (odd["a b"], str(odd["t"])) == (-3, "2026-02-28")
    assert frame.where("id = 7 and op = 'Insert'").count() == 1


def test_columns_added_and_dropped_over_time(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    older = EMPLOYEES._replace(columns=EMPLOYEES.columns[:2])
    newer = EMPLOYEES._replace(columns=EMPLOYEES.columns[:1] + EMPLOYEES.columns[2:])
    write_trail(name, [[insert(older, id="1", name="a")], [insert(newer, id="2", salary="3.00")]])
    frame = load(spark, name, table="hr.employees")
    assert frame.columns == ["id", "salary", "hired", "active", "name"]
    rows = [(row.id, row.name, row.salary) for row in frame.orderBy("id").collect()]
    assert rows == [(1, "a", None), (2, None, Decimal("3.00"))]


@pytest.mark.parametrize("seed", range(4))
def test_each_mode_handles_damage(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(seed, 60), max_bytes=6000)
    whole = rows_in_trail(name)
    victim = random.Random(seed).choice([row for row in whole if row["seqno"] == 1 and row["length"] > 8])
    path = name.file(1)
    content = bytearray(path.read_bytes())
    content[victim["rba"] + 60] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(Exception, match="damaged"):
        load(spark, name).count()
    dropped = load(spark, name, mode="DROPMALFORMED").select("seqno", "rba").collect()
    kept = {(row.seqno, row.rba) for row in dropped}
    every = {(row["seqno"], row["rba"]) for row in whole}
    lost = {(row["seqno"], row["rba"]) for row in whole if row["csn"] == victim["csn"]}
    assert every - lost <= kept < every
    rows_and_faults = load(spark, name, mode="PERMISSIVE").select("seqno", "rba", "fault").collect()
    faults = [row.fault for row in rows_and_faults if row.fault]
    assert len(faults) == 1
    assert "damaged at RBA" in faults[0]
    assert {(row.seqno, row.rba) for row in rows_and_faults if row.rba is not None} == kept


def test_an_incomplete_last_file_is_read_to_its_last_whole_transaction(spark: SparkSession, tmp_path: Path) -> None:
    """Like a trail that was copied while it was written: without its durable mark."""
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(3, 30), max_bytes=4000)
    whole, last = rows_in_trail(name), name.sequences()[-1]
    (name.folder / ".ea.durable").unlink()
    content = name.file(last).read_bytes()
    name.file(last).write_bytes(content[:-30])
    torn = next(row["csn"] for row in reversed(whole))
    rows = {(row.seqno, row.rba) for row in load(spark, name).select("seqno", "rba").collect()}
    assert rows == {(row["seqno"], row["rba"]) for row in whole if row["csn"] != torn}


def test_a_file_shorter_than_its_durable_end_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(3, 30))
    content = name.file(0).read_bytes()
    name.file(0).write_bytes(content[:-30])
    with pytest.raises(Exception, match="a complete record before the durable end of the trail"):
        load(spark, name).count()
    rows_and_faults = load(spark, name, mode="PERMISSIVE").select("fault").where("fault is not null").collect()
    assert len(rows_and_faults) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "{folder}/zz"}, "is not a trail"),
        ({"path": "{folder}/readme.txt"}, "is not a trail"),
        ({"path": "{trail}", "columns": "csn, nothing"}, "a trail has no column nothing"),
        ({"path": "{trail}", "mode": "SOMETIMES"}, "unknown mode SOMETIMES"),
        ({"path": "{trail}", "table": "hr.nobody"}, "the trail has no table hr.nobody"),
        ({"path": "{trail}", "table": "nobody"}, "is not a valid table name: write schema.table"),
        ({"path": "{trail}", "splitBytes": "many"}, "many is not a valid size"),
    ],
)
def test_invalid_options_are_refused(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 3))
    (name.folder / "readme.txt").write_text("no trail")
    given = {key: value.format(folder=name.folder, trail=name) for key, value in options.items()}
    with pytest.raises(Exception, match=message):
        spark.read.format("ggtrail").options(**given).load().count()


def test_a_trail_of_a_later_release_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    later = fileheader.COMPATIBILITY + 1
    write_trail(name, random_transactions(1, 3), options=WriterOptions(later))
    with pytest.raises(Exception, match=rf"format {later}; this program reads formats up to {later - 1}"):
        load(spark, name).count()
