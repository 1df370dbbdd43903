"""COMPARE while real processes replicate and rows change all the time: what is in flight is no difference, what is wrong is."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import Pipeline


@pytest.fixture
def pipeline(north: str, south: str) -> Iterator[Pipeline]:
    found = Pipeline(Path(tempfile.mkdtemp(prefix="ggs-compare-", dir="/tmp")), north, south)
    yield found
    found.close()


def work(dsn: str, ended: threading.Event, changed: list[int]) -> None:
    """Insert, update and delete without a pause, one row a transaction."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        number = 5000
        while not ended.is_set():
            number += 1
            connection.execute("INSERT INTO a.items VALUES (%s, 'new', 1)", [number])
            connection.execute("UPDATE a.items SET price = price + 1 WHERE id = %s", [number % 1000])
            connection.execute("DELETE FROM a.items WHERE id = %s", [number - 3])
            changed.append(number)


def test_a_busy_way_compares_equal_and_a_spoiled_row_is_found(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items SELECT n, 'name', n FROM generate_series(1, 4000) n")
    pipeline.wait_for_rows(4000)
    ended, changed = threading.Event(), list[int]()
    worker = threading.Thread(target=work, args=(pipeline.north, ended, changed))
    worker.start()
    compare = "COMPARE north TO south, TABLE a.items, INTO b.items, LAG 1 SEC"
    try:
        before = len(changed)
        found = json.loads(pipeline.run_as("json", compare).splitlines()[-1])
        assert (found["status"], [row for row in found["rows"] if not row[5]]) == ("ok", [])
        assert len(changed) > before
        pipeline.in_south("UPDATE b.items SET name = 'spoiled' WHERE id = 3000", "DELETE FROM b.items WHERE id = 3500")
        told = pipeline.run(compare, fails=True)
    finally:
        ended.set()
        worker.join()
    assert "2 rows differ" in told
    assert "id=3000" in told
    assert "spoiled" in told
    assert "id=3500" in told
