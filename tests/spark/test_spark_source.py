"""The data source ``ggtrail`` on a real Spark session: the same rows as the trail's own reader gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trail_samples import random_transactions, trail_in, write_trail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_row_arrives(spark: SparkSession, tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    transactions = random_transactions(1, 50)
    write_trail(name, transactions, max_bytes=4000)
    assert len(name.sequences()) > 2
    frame = spark.read.format("ggtrail").load(str(name))
    assert frame.count() == sum(map(len, transactions))
