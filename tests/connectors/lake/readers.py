"""Four independent readers of a lake: pyiceberg or deltalake, DuckDB's extensions, and Spark with the package's own reader."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lakes import delta_place, read_table
from source_trees import ROOT

from ggshell.connectors.lake.commits import CommitLog
from ggshell.connectors.lake.forms.iceberg_catalog import LOG as CATALOG_LOG
from ggshell.connectors.lake.forms.iceberg_catalog import catalog_of
from ggshell.connectors.lake.readable import LOG, readable_table
from ggshell.connectors.lake.spark_source import register_lakes
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.types import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "1.5.5"
PACKAGES = ("duckdb", *(f"duckdb-extension-{name}" for name in ("avro", "httpfs", "iceberg", "delta")))
OWN = "the package's files"
STORE_VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
Rows = list[tuple[Any, ...]]


def every_reader_agrees(
    target: LakeTarget, table: TableName, columns: list[str], expected: Rows, spark: SparkSession | None = None
) -> None:
    """Fail unless all readers find the expected rows in a table, in any order. ``spark`` None: without Spark."""
    wanted = sorted(map(_comparable, expected), key=repr)
    for reader, rows in tables_of_readers(target, table, spark).items():
        _require_equal(f"{table} by {reader}", _rows(rows.select(columns)), wanted)


def readers_agree_on_all_tables(target: LakeTarget, spark: SparkSession | None) -> list[str]:
    """Fail unless all readers find the same rows in each table of a lake and in its log. Returns the names of the tables.

    ``spark`` None: without Spark.
    """
    names = table_names(target)
    for name in names:
        tables = tables_of_readers(target, None if name == LOG else TableName.parse(name), spark)
        wanted = _rows(tables[OWN])
        for reader, rows in tables.items():
            _require_equal(f"{name} by {reader}", _rows(rows), wanted)
    return names


def table_names(target: LakeTarget) -> list[str]:
    """The tables that group LAKE has delivered to, and its log, except that of Parquet, which any program reads as it is."""
    done = CommitLog(target, "LAKE").latest()
    if done is None:
        return []
    return sorted(done.tables) if target.form is TableForm.PARQUET else [LOG, *sorted(done.tables)]


def tables_of_readers(
    target: LakeTarget, table: TableName | None, spark: SparkSession | None = None
) -> dict[str, pa.Table]:
    """The rows of a table (None: the log) by reader, all with the types of the lake's own schema."""
    name = LOG if table is None else str(table)
    own = readable_table(target, name)
    read = [own.schema.empty_table(), *(pa.Table.from_batches(own.batches(each), own.schema) for each in own.files)]
    answers = {OWN: pa.concat_tables(read)}
    library = read_table(target, table)
    if library is not None:
        answers["the format's library"] = library
    duckdb = duckdb_reader()
    if isinstance(duckdb, str):
        warnings.warn(f"DuckDB does not read this lake: {duckdb}", stacklevel=3)
    else:
        answers["DuckDB"] = duckdb.read(target, table)
    if spark is not None:
        register_lakes(spark)
        frame = spark.read.format("gglake").option("table", name).load(target.text)
        answers["Spark"] = frame.toArrow()
    return {reader: rows.select(own.schema.names).cast(own.schema) for reader, rows in answers.items()}


def _rows(table: pa.Table) -> Rows:
    return sorted((_comparable(tuple(row.values())) for row in table.to_pylist()), key=repr)


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in which NaN equals NaN."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row)


def _require_equal(what: str, found: Rows, wanted: Rows) -> None:
    """Fail with the first different rows; pytest's own report of long lists takes minutes."""
    different = [pair for pair in itertools.zip_longest(found, wanted) if pair[0] != pair[1]]
    assert not different, (
        f"{what}: {len(found)} rows, not {len(wanted)}; found and wanted, first of all: {different[:3]}"
    )


class DuckDbReader:
    """The process of ``duckdb_reader.py``."""

    def __init__(self, extensions: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("duckdb_reader.py")), str(extensions)]
        environment = {**os.environ, "PYTHONPATH": str(extensions)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def read(self, target: LakeTarget, table: TableName | None) -> pa.Table:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        store = {name: os.environ.get(name, "") for name in STORE_VARIABLES}
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder, "rows.arrow"))
            asked = {"form": target.form, "place": _place(target, table), "out": out, "store": store}
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            error = json.loads(self._process.stdout.readline())
            assert not error, error
            with pa.OSFile(out) as source:
                return pa.ipc.open_file(source).read_all()


@cache
def duckdb_reader() -> DuckDbReader | str:
    """The reader's process, started once; or the reason why there is none."""
    extensions = duckdb_extensions()
    return extensions if isinstance(extensions, str) else DuckDbReader(extensions)


def _place(target: LakeTarget, table: TableName | None) -> list[str]:
    """What DuckDB's reader of the format takes: the metadata file, the folder, or the files."""
    if target.form is TableForm.ICEBERG:
        location = catalog_of(target).load_table(CATALOG_LOG if table is None else (table.owner, table.name))
        return [location.metadata_location.removeprefix("file://")]
    if target.form is TableForm.DELTA:
        return [delta_place(target, table)]
    return [each.location for each in readable_table(target, str(table)).files]


@cache
def duckdb_extensions() -> Path | str:
    """A folder with DuckDB and its extensions, from PyPI, installed once; or the reason why there is none."""
    folder = ROOT / ".venv" / "var" / f"duckdb-{VERSION}"
    if (folder / "complete").exists():
        return folder
    packages = [f"{package}=={VERSION}" for package in PACKAGES]
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--upgrade",
        "--target",
        str(folder),
        *packages,
    ]
    ended = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode:
        return (ended.stderr.strip().splitlines() or ["pip failed"])[-1]
    (folder / "complete").touch()
    return folder
