"""The stream ``ggtrail`` in a real session: every row once, across rollovers, rate limits and restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from batches import Tx, make_batch
from trail_samples import NOTES, insert, open_writer, random_transactions, trail_in, write_trail

from ggshell.query.source import cut, is_between_transactions, position_of
from ggshell.trail.name import TrailName
from ggshell.trail.reader import VisibleEnd
from ggshell.types import TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def follow(spark: SparkSession, name: TrailName, lake: Path, **options: str) -> Any:
    """Copy the current rows to Parquet, and stop."""
    stream = spark.readStream.format("ggtrail").options(**options).load(str(name))
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(lake))
        .option("checkpointLocation", str(lake) + "-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return query


def places(spark: SparkSession, lake: Path) -> list[tuple[int, int, str]]:
    rows = spark.read.parquet(str(lake)).select("seqno", "rba", "csn").collect()
    return sorted((row.seqno, row.rba, row.csn) for row in rows)


def rows_in_trail(spark: SparkSession, name: TrailName) -> list[tuple[int, int, str]]:
    rows = spark.read.format("ggtrail").load(str(name)).select("seqno", "rba", "csn").collect()
    return sorted((row.seqno, row.rba, row.csn) for row in rows)


def test_every_row_arrives_once_across_files_restarts_and_growth(spark: SparkSession, tmp_path: Path) -> None:
    name, lake = trail_in(tmp_path), tmp_path / "lake"
    write_trail(name, random_transactions(2, 30), max_bytes=4000)
    follow(spark, name, lake)
    first = places(spark, lake)
    assert first == rows_in_trail(spark, name)
    write_trail(name, random_transactions(3, 30), max_bytes=4000, first_csn=31)  # A restart record, and more files.
    follow(spark, name, lake)
    assert places(spark, lake) == rows_in_trail(spark, name)
    assert len(places(spark, lake)) > len(first)


def test_a_rate_limit_makes_batches_of_whole_transactions(spark: SparkSession, tmp_path: Path) -> None:
    name, lake = trail_in(tmp_path), tmp_path / "lake"
    write_trail(name, random_transactions(4, 30), max_bytes=6000)
    query = follow(spark, name, lake, maxBytesPerTrigger="2500")
    batches = [each for each in query.recentProgress if each["numInputRows"]]
    assert len(batches) >= 3
    for each in batches:
        place = position_of(json.loads(each["sources"][0]["endOffset"]))
        assert is_between_transactions(name.file(place.seqno), place.rba)
    assert places(spark, lake) == rows_in_trail(spark, name)


def _end(name: TrailName) -> TrailPosition:
    end = VisibleEnd(name).read()
    assert end is not None
    return end


def test_a_stream_starts_at_the_given_position(spark: SparkSession, tmp_path: Path) -> None:
    name, lake = trail_in(tmp_path), tmp_path / "lake"
    write_trail(name, random_transactions(5, 30), max_bytes=4000)
    every = rows_in_trail(spark, name)
    inside = [row for row in every if row[0] == 1][1]
    follow(spark, name, lake, startingSeqno="1", startingRba=str(inside[1]))
    assert places(spark, lake) == [row for row in every if row >= inside]


def test_a_table_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    name, lake = trail_in(tmp_path), tmp_path / "lake"
    write_trail(name, random_transactions(9, 20), max_bytes=6000)
    options = {"table": "hr.employees", "with": "op,csn"}
    follow(spark, name, lake, maxBytesPerTrigger="3000", **options)
    write_trail(name, random_transactions(10, 20), max_bytes=6000, first_csn=21)
    follow(spark, name, lake, **options)
    batch = spark.read.format("ggtrail").options(**options).load(str(name))
    stream = spark.read.parquet(str(lake))
    assert stream.dtypes == batch.dtypes
    assert sorted(map(str, stream.collect())) == sorted(map(str, batch.collect()))


def test_a_missing_file_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    name, lake = trail_in(tmp_path), tmp_path / "lake"
    write_trail(name, random_transactions(6, 20), max_bytes=3000)
    follow(spark, name, lake)
    write_trail(name, random_transactions(7, 40), max_bytes=3000, first_csn=21)
    last = name.sequences()[-1]
    name.file(last - 1).unlink()
    with pytest.raises(Exception, match=r"sequence number \d+\) is missing"):
        follow(spark, name, lake)


@pytest.mark.parametrize("size", [1, 40, 300, 1000, 10_000])
def test_batches_end_between_transactions_and_reach_the_end(tmp_path: Path, size: int) -> None:
    """Also where one transaction is larger than a file."""
    name = trail_in(tmp_path)
    writer = open_writer(name, 2000)
    for csn in range(1, 8):
        pieces = 4 if csn == 3 else 1
        for piece in range(pieces):
            rows = [insert(NOTES, id=str(row), body="x" * 50) for row in range(12)]
            writer.write(make_batch([Tx(csn, rows, piece == 0, piece == pieces - 1)]))
        writer.flush()
    writer.close()
    assert name.sequences()[-1] >= 2
    place, end = TrailPosition(0, 0), _end(name)
    while place < end:
        following = cut(name, place, end, size)
        assert following > place
        assert is_between_transactions(name.file(following.seqno), following.rba)
        place = following
    assert place == end


def test_several_trails_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_trail(trail_in(tmp_path), random_transactions(8, 2))
    write_trail(trail_in(tmp_path, "eb"), random_transactions(8, 2))
    with pytest.raises(Exception, match="contains 2 trails"):
        follow(spark, trail_in(tmp_path)._replace(prefix=""), tmp_path / "lake")
