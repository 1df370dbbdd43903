"""COMPARE while real processes replicate and rows change continuously: only real differences are reported."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import psycopg
import pytest
from pipelines import Pipeline
from short_folders import short_folder


@pytest.fixture
def pipeline(north: str, south: str) -> Iterator[Pipeline]:
    found = Pipeline(short_folder("ggs-compare-"), north, south)
    yield found
    found.close()


def workload(dsn: str, stop: threading.Event, changed: list[int]) -> None:
    """Insert, update and delete without a pause, one row per transaction."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        number = 5000
        while not stop.is_set():
            number += 1
            connection.execute("INSERT INTO a.items VALUES (%s, 'new', 1)", [number])
            connection.execute("UPDATE a.items SET price = price + 1 WHERE id = %s", [number % 1000])
            connection.execute("DELETE FROM a.items WHERE id = %s", [number - 3])
            changed.append(number)


def test_a_busy_replication_compares_equal_and_a_changed_target_row_is_found(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items SELECT n, 'name', n FROM generate_series(1, 4000) n")
    pipeline.wait_for_rows(4000)
    stop, changed = threading.Event(), list[int]()
    worker = threading.Thread(target=workload, args=(pipeline.north, stop, changed))
    worker.start()
    compare = "COMPARE north TO south, TABLE a.items, INTO b.items, LAG 1 SEC"
    try:
        before = len(changed)
        found = json.loads(pipeline.run_as("json", compare).splitlines()[-1])
        assert (found["status"], [row for row in found["rows"] if not row[5]]) == ("ok", [])
        assert len(changed) > before
        pipeline.in_south("UPDATE b.items SET name = 'spoiled' WHERE id = 3000", "DELETE FROM b.items WHERE id = 3500")
        output = pipeline.run(compare, fails=True)
    finally:
        stop.set()
        worker.join()
    assert "2 rows differ" in output
    assert "id=3000" in output
    assert "spoiled" in output
    assert "id=3500" in output
