"""``lake_growth``: the cost of a changed row of an Iceberg table while the table grows, and the memory of the process."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.table import Table

from benches.figures import LIMIT_NAME, Figure, less_is_better
from benches.memory import peak
from ggshell.connectors.lake.file_plan import TARGET_BYTES
from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog
from ggshell.connectors.lake.forms.iceberg_maintenance import IcebergMaintenance
from ggshell.connectors.lake.forms.iceberg_rows import RowChanges

SIZES = (1_000_000, 10_000_000, 50_000_000)
QUICK_SIZES = (20_000, 200_000)
CHANGED = 10_000
"""Rows that a batch replaces, spread over the whole table."""
BATCHES = 12
PART = 1_000_000
LIMIT_MB = 2048.0


def run(rounds: int, quick: bool) -> list[Figure]:
    """The median cost of the batches at each size, in one growing table; the peer is the smallest size.

    There is always one round, regardless of ``rounds``: the largest table takes minutes to fill, and each size has its
    own batches.
    """
    sizes = QUICK_SIZES if quick else SIZES
    ours, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_measure, args=(sizes, theirs))
    process.start()
    theirs.close()
    costs, files, megabytes = ours.recv()
    process.join()
    figures = [
        less_is_better(
            "lake_growth",
            f"{size:,} rows, {CHANGED:,} changed at random",
            "CPU microseconds/row",
            [costs[size]],
            [costs[sizes[0]]],
            f"{sizes[0]:,} rows",
            0.5,
        )
        for size in sizes[1:]
    ]
    figures.append(less_is_better("lake_growth", "data files", "files", [files], [50.0], LIMIT_NAME, 1.0))
    figures.append(less_is_better("lake_growth", "peak memory", "MB", [megabytes], [LIMIT_MB], LIMIT_NAME, 1.0))
    return figures


def _measure(sizes: tuple[int, ...], answer: multiprocessing.connection.Connection) -> None:
    costs = {}
    with tempfile.TemporaryDirectory(prefix="ggshell-growth-") as folder:
        catalog = open_catalog(Path(folder))
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.orders", _rows(np.arange(2), 0).schema)
        changes = RowChanges(table.io, Path(folder) / "cache")
        rows = 0
        for size in sizes:
            while rows < size:
                table.append(_rows(np.arange(rows, min(size, rows + PART)), 0))
                rows = min(size, rows + PART)
            IcebergMaintenance(table).compact(TARGET_BYTES)
            changes.rows(table.refresh(), pa.array(["1"]))  # makes the indexes of new files
            costs[size] = _cost(table, changes, rows)
        files = IcebergMaintenance(table).data_files()
    answer.send((costs, float(files), peak(multiprocessing.current_process().pid or 0)))


def _cost(table: Table, changes: RowChanges, rows: int) -> float:
    """CPU microseconds per changed row, the median of some batches."""
    random = np.random.default_rng(rows)
    found = []
    for number in range(BATCHES):
        fresh = _rows(np.unique(random.integers(0, rows, CHANGED)), number + 1)
        keys = fresh["_key"].combine_chunks()
        began = time.process_time()
        with table.transaction() as transaction:
            changes.replace(transaction, fresh, keys, {})
        found.append((time.process_time() - began) / len(keys) * 1e6)
    return float(np.median(found))


def _rows(keys: np.ndarray, version: int) -> pa.Table:
    return pa.table(
        {
            "_key": pa.array(keys).cast(pa.string()),
            "id": pa.array(keys),
            "total": pa.array((keys * 7919 + version) % 100_003),
            "note": pa.array([f"note {version} {key % 9973}" for key in keys.tolist()]),
        }
    )
