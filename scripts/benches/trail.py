"""``trail``: rows a second written, scanned as columns compared with DuckDB reading the same rows from
Parquet, and finding a position.

One thread each. The scan gives the rows' own columns as text, with CSN and operation, to whoever asks; DuckDB gives the same
columns as Arrow.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benches.figures import Figure, alternate, less_is_better, more_is_better
from ggshell.clock import SystemClock
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.trail.columnar import read_columnar, read_table
from ggshell.trail.fileheader import Producer
from ggshell.trail.finding import position_of_csn, position_of_time
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TableName

SIZE = 100
"""Rows of a transaction."""
BATCH = 100_000
TIME = 1_700_000_000_000_000
TABLE = TableDefinition(
    TableName("bench", "rows"),
    tuple(Column(name, "text", 25) for name in ("id", "customer", "amount", "placed", "note")),
    (0,),
)
OWN = ["csn", "op"]


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = BATCH if quick else 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    try:
        return [*_scans(folder, rows, rounds), *_finds(folder, rows if quick else 4_500_000, rounds)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _batch(first: int) -> ChangeBatch:
    """Rows as capture hands them on."""
    images = [
        encode_image(
            [
                (0, b"%d" % (first + row)),
                (1, b"%d" % (row % 1000)),
                (2, b"%d.25" % row),
                (3, b"2026-01-01 00:00:00+00"),
                (4, b"x" * 64),
            ]
        )
        for row in range(BATCH)
    ]
    length = np.array([len(image) for image in images], dtype=np.int64)
    return ChangeBatch(
        tables=(TABLE,),
        table=np.zeros(BATCH, np.uint16),
        io_type=np.full(BATCH, int(IoType.INSERT), np.uint8),
        position=np.arange(BATCH, dtype=np.uint64),
        buffer=b"".join(images),
        start=np.cumsum(length) - length,
        length=length,
        rba=np.zeros(BATCH, np.int64),
        pieces=(),
    )


def write_trail(name: TrailName, rows: int, max_bytes: int = 1 << 40) -> float:
    """Write so many rows in batches of 1,000, as a large load comes; seconds until all is durable."""
    whole = _batch(0)
    writer = TrailWriter.open(name, clock=SystemClock(), producer=Producer("EXT", "bench"), max_bytes=max_bytes)
    began = time.perf_counter()
    step = 1000
    for first in range(0, rows, step):
        rows_of = slice(first % BATCH, first % BATCH + step)
        arrays = {
            each: getattr(whole, each)[rows_of] for each in ("table", "io_type", "position", "start", "length", "rba")
        }
        pieces = []
        for number in range(step // SIZE):
            transaction = first // SIZE + number + 1
            header = TransactionHeader(str(transaction), Csn(transaction * 1000), TIME + transaction * 1000, 1)
            pieces.append(TransactionPiece(header, number * SIZE, SIZE, begins=True, ends=True))
        writer.write(replace(whole, pieces=tuple(pieces), **arrays))
    writer.flush()
    taken = time.perf_counter() - began
    writer.close()
    return taken


def _scans(folder: Path, rows: int, rounds: int) -> list[Figure]:
    written = [rows / write_trail(TrailName(folder, f"w{number}"), rows) for number in range(min(rounds, 9))]
    path, parquet = TrailName(folder, "w0").file(0), folder / "rows.parquet"
    pq.write_table(pa.Table.from_batches([batch for _, batch in read_table(path, "bench.rows", columns=OWN)]), parquet)
    ours, peer = alternate(rounds, lambda _: rows / scan(path, rows), lambda _: rows / _peer(parquet, rows))
    headers = [rows / _headers(path, rows) for _ in range(rounds)]
    for number in range(1, min(rounds, 9)):
        TrailName(folder, f"w{number}").file(0).unlink()
    return [
        more_is_better("trail", "written", "rows/s", written, [250_000.0], "the goal", 1.0),
        more_is_better("trail", "scanned, own columns", "rows/s", ours, peer, "DuckDB from Parquet", 0.35),
        more_is_better("trail", "scanned, own columns", "rows/s", ours, [1_000_000.0], "the goal", 1.0),
        more_is_better("trail", "scanned, table and op", "rows/s", headers, [1_000_000.0], "the goal", 1.0),
    ]


def scan(path: Path, rows: int) -> float:
    """Read the rows' own columns with CSN and operation; seconds. Raises RuntimeError if rows are missing."""
    began = time.perf_counter()
    count = sum(len(batch) for _, batch in read_table(path, "bench.rows", columns=OWN))
    return _taken(began, count, rows)


def _headers(path: Path, rows: int) -> float:
    began = time.perf_counter()
    return _taken(began, sum(len(batch) for batch in read_columnar(path, ["table", "op", "length"])), rows)


def _peer(parquet: Path, rows: int) -> float:
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 1}) as connection:
        reader = connection.sql("SELECT * FROM read_parquet(?)", params=[str(parquet)]).to_arrow_reader(100_000)
        count = sum(len(batch) for batch in reader)
    return _taken(began, count, rows)


def _taken(began: float, count: int, rows: int) -> float:
    taken = time.perf_counter() - began
    if count != rows:
        raise RuntimeError(f"{count} rows were read, not {rows}")
    return taken


def _finds(folder: Path, rows: int, rounds: int) -> list[Figure]:
    name = TrailName(folder, "fi")
    write_trail(name, rows)
    gigabytes = sum(name.file(seqno).stat().st_size for seqno in name.sequences()) / 2**30
    middle = rows // SIZE * 2 // 3
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        by_csn = position_of_csn(name, Csn(middle * 1000))
        between = time.perf_counter()
        by_time = position_of_time(name, TIME + middle * 1000)
        found.append(max(between - began, time.perf_counter() - between))
        if by_csn is None or by_csn != by_time:
            raise RuntimeError(f"CSN stands at {by_csn}, its time at {by_time}")
    case = f"a position in {gigabytes:.1f} GB"
    return [less_is_better("trail", case, "s", found, [0.5], "the limit", 1.0)]
