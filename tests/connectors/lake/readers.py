"""Four independent readers of a lake: pyiceberg or deltalake, DuckDB's extensions, and Spark with the package's own reader."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lakes import read_table
from source_trees import ROOT

from ggshell.connectors.lake.readable import readable_table
from ggshell.connectors.lake.spark_source import register_lakes
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.types import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "1.5.5"
PACKAGES = ("duckdb", *(f"duckdb-extension-{name}" for name in ("avro", "httpfs", "iceberg", "delta")))
Rows = list[tuple[Any, ...]]


def every_reader_agrees(
    target: LakeTarget, table: TableName, columns: list[str], expected: Rows, spark: SparkSession | None = None
) -> None:
    """Fail unless all readers find the same rows in a table, in any order. ``spark`` None: without Spark."""
    tables = tables_of_readers(target, table, spark)
    found = {name: sorted(_rows(rows, columns), key=repr) for name, rows in tables.items()}
    wanted = sorted(expected, key=repr)
    assert found == dict.fromkeys(found, wanted)


def tables_of_readers(target: LakeTarget, table: TableName, spark: SparkSession | None = None) -> dict[str, pa.Table]:
    """The rows of a table by reader, all with the types of the lake's own schema."""
    own = readable_table(target, str(table))
    read = [own.schema.empty_table(), *(pa.Table.from_batches(own.batches(each), own.schema) for each in own.files)]
    arrow = pa.concat_tables(read)
    answers = {"the package's files": arrow}
    library = read_table(target, table)
    if library is not None:
        answers["the format's library"] = library.select(arrow.schema.names).cast(arrow.schema)
    extensions = duckdb_extensions()
    if isinstance(extensions, str):
        warnings.warn(f"DuckDB does not read this lake: {extensions}", stacklevel=3)
    else:
        answers["DuckDB"] = _duckdb(extensions, target, table).select(arrow.schema.names).cast(arrow.schema)
    if spark is not None:
        register_lakes(spark)
        frame = spark.read.format("gglake").option("table", str(table)).load(f"{target.form}:{target.location}")
        answers["Spark"] = frame.toArrow().select(arrow.schema.names).cast(arrow.schema)
    return answers


def _rows(table: pa.Table, columns: list[str]) -> Rows:
    return [tuple(row.values()) for row in table.select(columns).to_pylist()]


def _duckdb(extensions: Path, target: LakeTarget, table: TableName) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "rows.arrow")
        command = [sys.executable, str(Path(__file__).with_name("duckdb_reader.py")), str(extensions), target.form]
        environment = {**os.environ, "PYTHONPATH": str(extensions)}
        ended = subprocess.run(
            [*command, _place(target, table), str(out)], capture_output=True, text=True, env=environment, check=False
        )
        assert ended.returncode == 0, ended.stderr
        with pa.OSFile(str(out)) as source:
            return pa.ipc.open_file(source).read_all()


def _place(target: LakeTarget, table: TableName) -> str:
    """What DuckDB's reader of the format takes: the metadata file, the folder, or the files."""
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog

        location = open_catalog(Path(target.location)).load_table((table.owner, table.name)).metadata_location
        return location.removeprefix("file://").replace("'", "''")
    if target.form is TableForm.DELTA:
        return f"{target.location}/current/{table}".replace("'", "''")
    files = [each.location.replace("'", "''") for each in readable_table(target, str(table)).files]
    return "', '".join(files)


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
