"""``python duckdb_reader.py EXTENSIONS``: the tables of lakes as DuckDB's own readers of the formats see them.

It is a process of its own, because the extensions exist only for an older DuckDB than the one that the tests use. Each line of
standard input is a request in JSON: ``form``, ``place``, ``store`` and
``out``, the file for the rows. Each answer is a line: an error in
JSON, or an empty text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa

SCANS = {"iceberg": "iceberg_scan", "delta": "delta_scan", "parquet": "read_parquet"}


def connect(extensions: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("avro", "httpfs", "iceberg", "delta"):  # iceberg needs avro, which it cannot download
        (file,) = Path(extensions, f"duckdb_extension_{name}").rglob(f"{name}.duckdb_extension")
        connection.load_extension(str(file))
    return connection


def use_store(connection: duckdb.DuckDBPyConnection, store: dict[str, str]) -> None:
    """Log in to an object store with the variables that S3 clients read; an empty address: no store."""
    if store["AWS_ENDPOINT_URL"]:
        options = {
            "KEY_ID": store["AWS_ACCESS_KEY_ID"],
            "SECRET": store["AWS_SECRET_ACCESS_KEY"],
            "REGION": store["AWS_REGION"],
            "ENDPOINT": urlsplit(store["AWS_ENDPOINT_URL"]).netloc,
            "URL_STYLE": "path",
        }
        listed = ", ".join(f"{name} {quoted(value)}" for name, value in options.items())
        connection.execute(f"CREATE OR REPLACE SECRET store (TYPE s3, PROVIDER config, USE_SSL false, {listed})")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read(connection: duckdb.DuckDBPyConnection, form: str, place: list[str], out: str) -> None:
    if form == "parquet":
        query = f"SELECT * FROM read_parquet([{', '.join(map(quoted, place))}], hive_partitioning = false)"
    else:
        query = f"SELECT * FROM {SCANS[form]}({quoted(place[0])})"
    found = connection.sql(query).to_arrow_table()
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)


def main(extensions: str) -> None:
    connection = connect(extensions)
    for line in sys.stdin:
        asked = json.loads(line)
        error = ""
        try:
            use_store(connection, asked["store"])
            read(connection, asked["form"], asked["place"], asked["out"])
        except duckdb.Error as failure:
            error = str(failure)
        sys.stdout.write(json.dumps(error) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
