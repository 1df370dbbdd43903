"""What a lake Replicat leaves in Java, in which it runs for months."""

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
def test_nothing_of_a_batch_stays_in_java(lake: Lake, spark: SparkSession) -> None:
    deliveries, chance = Deliveries(lake, spark), random.Random(7)
    places, held = [BEGIN], []
    for number in range(8):
        places.append(lake.write([person(row, chance.randbytes(40_000).hex(), "1") for row in range(100)]))
        deliveries.batch(number, places[-2], places[-1])
        held.append(_held_by_java(spark))
    batch = (places[-1].rba - places[-2].rba) >> 20
    assert batch > 6
    # The first brings classes with it; of the others the least counts, as what is let go of is freed a little later.
    assert min(held[-3:]) - min(held[1:4]) < 3 * batch, held


def _held_by_java(spark: SparkSession) -> int:
    """Megabytes in use when all that can be freed has been: Spark lets go, in a thread of its own, of what a collection found,
    and the next one frees that."""
    gc.collect()  # what Python no longer names, Java need not keep
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
