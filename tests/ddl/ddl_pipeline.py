"""A pipeline that replicates schemas with their DDL, from one database to an empty one."""

from __future__ import annotations

import difflib
import hashlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psycopg
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.connectors.postgres import session
from ggshell.demo.postgres_server import find_binaries
from ggshell.types import TableName, quote_table

EXTRACT = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nDDL INCLUDE ALL\nGETTRUNCATES\nTABLE *.*;\n"
REPLICAT = "REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\nMAP *.*, TARGET *.*;\n"
_NOT_REPLICATED = re.compile(
    r"^(--|\\(un)?restrict |SET |SELECT pg_catalog|ALTER TABLE ONLY \S+ REPLICA IDENTITY|CREATE TRIGGER ggshell_"
    r"|ALTER TABLE \S+ ENABLE ALWAYS TRIGGER ggshell_|$)"
)
_ALL_BEFORE_17 = "GRANT SELECT,INSERT,REFERENCES,DELETE,TRIGGER,TRUNCATE,UPDATE ON TABLE"
"""How pg_dump prints GRANT ALL of a server that has no privilege MAINTAIN."""
_VERSION = re.compile(r"CONSTRAINT \S+_not_null (?=NOT NULL)")
_VIEW_COLUMN = re.compile(r"\b[a-z_]\w*\.(?=[a-z_])")
"""What only some versions of the server print: names of NOT NULL constraints, tables of the columns of a view."""
_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = ANY (%s) AND c.relkind IN ('r', 'p') ORDER BY 1, 2"""


class DdlPipeline(Pipeline):
    """EXT1 and REP1 for everything in some schemas; ``add_and_start`` begins with empty schemas on both sides.

    Schema s is always one of them. ``captured``: the schemas whose rows are compared; ``schemas``: those whose objects are.
    """

    def __init__(self, root: Path, north: str, south: str) -> None:
        super().__init__(root, north, south)
        self.write("ext1", EXTRACT)
        self.write("rep1", REPLICAT)
        self.schemas: tuple[str, ...] = ()
        self.captured: tuple[str, ...] = ()
        self._ends = 0

    def add_and_start(self, kind: str = "", schemas: Sequence[str] = ("s",)) -> None:
        self.schemas = self.captured = tuple(schemas)
        for execute in (self.in_north, self.in_south):
            execute(*(f"CREATE SCHEMA IF NOT EXISTS {schema}" for schema in schemas))
        self.run(
            "DBLOGIN USERIDALIAS north",
            *(f"ADD SCHEMATRANDATA {schema}" for schema in schemas),
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
            "DBLOGIN USERIDALIAS south",
            "ADD CHECKPOINTTABLE b.checks",
            f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
        )
        self.start()

    def wait_until_applied(self, seconds: float = 60) -> None:
        """Wait until everything that has committed in the source is in the target: a row of its own has arrived."""
        # No number is used twice, even after the schema is dropped: the target may still have the row before.
        self._ends += 1
        self.in_north(
            "CREATE TABLE IF NOT EXISTS s.ends (id int PRIMARY KEY)", f"INSERT INTO s.ends VALUES ({self._ends})"
        )

        def arrived() -> bool:
            for group in (EXT1, REP1):
                assert self.is_running(group), self.home.report(group[0]).read_text()[-3000:]
            try:
                return self.in_south("SELECT max(id) FROM s.ends") == [(self._ends,)]
            except psycopg.errors.UndefinedTable:
                return False

        try:
            until("the last transaction arrives", arrived, seconds=seconds)
        except AssertionError as error:
            reports = (self.home.report(name).read_text()[-3000:] for name, _ in (EXT1, REP1))
            raise AssertionError("\n".join((str(error), self.run("INFO ALL"), *reports))) from None

    def assert_same(self) -> None:
        """Assert that both sides have the same objects, by pg_dump, and the same rows."""
        found = self.differences()
        assert not found, "\n".join(found[:100])

    def differences(self) -> list[str]:
        """The lines of pg_dump, and the tables with their rows, that only one side has."""
        north, south = schema_of(self.north, self.schemas), schema_of(self.south, self.schemas)
        found = [line for line in difflib.unified_diff(north, south, lineterm="", n=0) if line[:2] != "@@"]
        rows, arrived = rows_of(self.north, self.captured), rows_of(self.south, self.captured)
        return found + [
            f"{name}: {rows[name]}, {arrived.get(name)}" for name in rows if rows[name] != arrived.get(name)
        ]


def schema_of(dsn: str, schemas: Sequence[str]) -> list[str]:
    """What pg_dump prints of schemas, without what ADD SCHEMATRANDATA adds to a source."""
    named = [f"--schema={schema}" for schema in schemas]
    command = [find_binaries() / "pg_dump", "--schema-only", *named, "-d", dsn]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    text = found.stdout.replace(_ALL_BEFORE_17, "GRANT ALL ON TABLE")
    return [_normal(line) for line in text.splitlines() if not _NOT_REPLICATED.match(line)]


def _normal(line: str) -> str:
    line = _VERSION.sub("", line)
    return _VIEW_COLUMN.sub("", line) if line.startswith(" ") else line


def rows_of(dsn: str, schemas: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Count and sum of the rows of each table of schemas."""
    with session.connect(dsn) as connection:
        names = connection.execute(_TABLES, [list(schemas)]).fetchall()
        return {f"{owner}.{name}": _sum(connection, TableName(owner, name)) for owner, name in names}


def _sum(connection: psycopg.Connection, table: TableName) -> tuple[int, str]:
    rows = connection.execute(f"SELECT whole_row::text FROM {quote_table(table)} whole_row ORDER BY 1").fetchall()  # type: ignore[call-overload]
    return len(rows), hashlib.md5("\n".join(str(row) for (row,) in rows).encode(), usedforsecurity=False).hexdigest()
