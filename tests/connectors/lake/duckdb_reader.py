"""``python duckdb_reader.py EXTENSIONS FORM PLACE OUT``: a lake's table as DuckDB's own readers of the formats see it.

It is a process of its own, because the extensions exist only for an older DuckDB than the one that the tests use.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa

SCANS = {"iceberg": "iceberg_scan", "delta": "delta_scan", "parquet": "read_parquet"}


def main(extensions: str, form: str, place: str, out: str) -> None:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("avro", "httpfs", "iceberg", "delta"):  # iceberg needs avro, which it cannot download
        (file,) = Path(extensions, f"duckdb_extension_{name}").rglob(f"{name}.duckdb_extension")
        connection.load_extension(str(file))
    if form == "parquet":
        query = f"SELECT * FROM read_parquet(['{place}'], hive_partitioning = false)"
    else:
        query = f"SELECT * FROM {SCANS[form]}('{place}')"
    found = connection.sql(query).to_arrow_table()
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
