"""The Java memory that a lake Replicat retains while it runs for months."""

from __future__ import annotations

import gc
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from deliveries import BEGIN, Deliveries
from lakes import Lake, person

from ggshell.connectors.lake.target import TableForm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_no_memory_of_a_batch_is_retained_in_java(lake: Lake, spark: SparkSession) -> None:
    deliveries, rng = Deliveries(lake, spark, 1 << 20), random.Random(7)
    places, held = [BEGIN], []
    for number in range(8):
        places.append(lake.write([person(row, rng.randbytes(40_000).hex(), "1") for row in range(100)]))
        deliveries.batch(number, places[-2], places[-1])
        held.append(_held_by_java(spark))
    batch = (places[-1].rba - places[-2].rba) >> 20
    assert batch > 6
    # The first batch loads classes; of the others the minimum counts, as memory is freed with a delay.
    assert min(held[-3:]) - min(held[1:4]) < 3 * batch, held


def _held_by_java(spark: SparkSession) -> int:
    """Megabytes in use after everything possible has been freed: a thread of Spark releases what one collection found, and the
    next collection frees it."""
    gc.collect()  # Java need not keep what Python no longer references.
    held, pause = [_after_a_collection(spark) for _ in range(2)], threading.Event()
    while len(held) < 4 or held[-1] < held[-2]:
        pause.wait(0.15)
        held.append(_after_a_collection(spark))
    return min(held)


def _after_a_collection(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20
