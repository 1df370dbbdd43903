"""A home with one trail and a Replicat that delivers to a lake of any form; the lake is read by other programs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from batches import Row, Tx, make_batch
from command_line import run_ggshell
from processes import until
from rest_catalog import CLIENT, SECRET

from ggshell.clock import FakeClock
from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.home.home import Home
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName, TrailPosition

PEOPLE = TableDefinition(
    TableName("hr", "people"),
    (Column("id", "integer", 23), Column("name", "text", 25), Column("pay", "numeric(8,2)")),
    (0,),
)
PLACES = TableDefinition(TableName("hr", "Places"), (Column("id", "smallint", 21), Column("at", "date", 1082)), (0,))
NOTES = TableDefinition(TableName("hr", "notes"), (Column("line", "text", 25),), ())


def image(*values: str | None) -> bytes:
    return encode_image((index, None if value is None else value.encode()) for index, value in enumerate(values))


def person(number: int, name: str | None, pay: str) -> Row:
    return Row(PEOPLE, IoType.INSERT, image(str(number), name, pay))


def key_update(table: TableDefinition, old: int, new: int) -> Row:
    """A change of a row's key; the other columns are not in the record."""
    parts = (encode_image([(0, str(number).encode())]) for number in (old, new))
    return Row(table, IoType.KEY_FIELD_COMP, join_key_update(*parts))


class Lake:
    """The home, its trail, and the lake below it."""

    def __init__(self, root: Path, form: TableForm) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.form = form
        self.folder = root / "lake"
        self.target = LakeTarget(form, str(self.folder))
        self.trail = TrailName.parse("./dirdat/ea", root)
        self.home.parameters("lake").write_text("REPLICAT lake\nMAP hr.*, TARGET hr.*;\n")
        self.end = TrailPosition(0, 0)
        self.is_whole = True
        """False after a test has removed files of it: then nothing reads its tables."""
        self._csn = 0

    def write(self, *transactions: list[Row], trail: TrailName | None = None) -> TrailPosition:
        """Write more transactions to the trail, or to another one; returns its end."""
        writer = TrailWriter.open(
            trail or self.trail, clock=FakeClock(), producer=Producer("EXT1", "Extract"), max_bytes=1 << 30
        )
        for rows in transactions:
            self._csn += 1
            writer.write(make_batch([Tx(self._csn, rows)]))
        self.end = writer.flush()
        writer.close()
        return self.end

    def shell(self, text: str, engine: str = "auto") -> subprocess.CompletedProcess[str]:
        return run_ggshell("--home", self.home.root, "--auto-manager", "--engine", engine, "-c", text, timeout=120)

    def run(self, text: str, engine: str = "auto") -> str:
        result = self.shell(text, engine)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    @property
    def committed(self) -> LakeCommit | None:
        return CommitLog(self.target, "lake").latest()

    @property
    def is_delivered(self) -> bool:
        done = self.committed
        return done is not None and done.position >= self.end

    def delivered(self) -> None:
        until("the trail is in the lake", lambda: self.is_delivered, 300)

    def rows(self, table: TableDefinition, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The current rows of a table, ordered by the first column."""
        listed = ", ".join(f'"{column}"' for column in columns)
        lake = read_table(self.target, table.name)
        if lake is None:
            done = self.committed
            assert done is not None
            version = f"v={done.tables[str(table.name)]:012d}"
            files = str(self.folder / "current" / str(table.name) / version / "**" / "*.parquet").replace("'", "''")
            query = f"SELECT {listed} FROM read_parquet('{files}', hive_partitioning = false) ORDER BY 1"
            return duckdb.sql(query).fetchall()
        return duckdb.sql(f"SELECT {listed} FROM lake ORDER BY 1").fetchall()

    def people(self) -> list[tuple[int, str | None, str]]:
        return [(number, name, str(pay)) for number, name, pay in self.rows(PEOPLE, ("id", "name", "pay"))]

    def logged(self) -> list[int]:
        """The trail positions of all changes in the log."""
        lake = read_table(self.target, None)
        if lake is None:
            files = self.folder / "log" / "*" / "*" / "*" / "*.parquet"
            query = f"SELECT rba FROM read_parquet('{files}') ORDER BY rba"
        else:
            query = "SELECT rba FROM lake ORDER BY rba"
        return [rba for (rba,) in duckdb.sql(query).fetchall()]


def delta_place(lake: LakeTarget, name: TableName | None) -> str:
    """Where docs/lakes.md says that a table (None: the log) of a Delta lake is."""
    if name is None:
        return f"{lake.location}/log"
    if lake.folder is not None:
        return f"{lake.location}/current/{name}"
    letters = (
        chr(byte) if re.match(rb"[A-Za-z0-9_.~-]", bytes([byte])) else f"={byte:02X}" for byte in str(name).encode()
    )
    return f"{lake.location}/current/{''.join(letters)}"


def read_table(lake: LakeTarget, name: TableName | None) -> pa.Table | None:
    """A table (None: the log) as the form's own library reads it; None for Parquet, which has no library."""
    if lake.form is TableForm.DELTA:
        from deltalake import DeltaTable

        options = {} if lake.folder is not None else {"allow_http": "true"}
        return pa.table(DeltaTable(delta_place(lake, name), storage_options=options).scan())
    if lake.form is TableForm.ICEBERG:
        return (
            _catalog(lake)
            .load_table(("_ggshell", "log") if name is None else (name.owner, name.name))
            .scan()
            .to_arrow()
        )
    return None


def _catalog(lake: LakeTarget) -> Any:
    """PyIceberg's catalog of a lake, with the settings that its users give."""
    from pyiceberg.catalog import load_catalog

    store = {"s3.endpoint": os.environ.get("AWS_ENDPOINT_URL", "")}
    if not lake.catalog:
        return load_catalog("lake", type="sql", uri=f"sqlite:///{lake.location}/catalog.db", **store)
    kind, _, address = lake.catalog.partition("+")
    if kind == "sql":
        return load_catalog("lake", type="sql", uri=address.replace("postgresql://", "postgresql+psycopg://"), **store)
    login = {"credential": f"{CLIENT}:{SECRET}", "oauth2-server-uri": f"{address}/v1/oauth/tokens"}
    return load_catalog("lake", type="rest", uri=address, **login, **store)
