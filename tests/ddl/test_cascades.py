"""A chain of databases: what a Replicat applied in the middle goes on to the next one, and nothing comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from ddl_pipeline import rows_of, schema_of
from pipelines import Pipeline
from processes import until

from ggshell.home.credential import CredentialStore

GROUPS = ("ext1", "rep1", "ext2", "rep2", "ext3", "rep3")
AT_NORTH = (
    "SET search_path = s",
    "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 20) n",
    "BEGIN; ALTER TABLE t ADD n int DEFAULT 7; INSERT INTO t VALUES (30, 'x', 1); SAVEPOINT a; DROP TABLE t; ROLLBACK TO a;"
    "UPDATE t SET n = 2 WHERE id < 5; ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (31, 'y'); COMMIT",
    "ALTER TABLE t ADD u uuid DEFAULT gen_random_uuid()",
    "CREATE TABLE copy AS SELECT * FROM t WHERE id > 10",
    "CREATE INDEX CONCURRENTLY i ON t (w)",
    "CREATE FUNCTION make (name text) RETURNS void LANGUAGE plpgsql AS"
    " 'BEGIN EXECUTE format(''CREATE TABLE %I (id int PRIMARY KEY)'', name); END'",
    "SELECT make('made'), make('made too')",
    "INSERT INTO made VALUES (1)",
    "CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, 'one'); TRUNCATE p1;"
    "INSERT INTO p VALUES (2, 'two')",
    "DROP INDEX CONCURRENTLY i",
    "CREATE TYPE mood AS ENUM ('fine'); ALTER TYPE mood ADD VALUE 'bad'; CREATE VIEW seen AS SELECT id FROM t",
)
AT_HUB = (
    "SET search_path = s",
    "CREATE TABLE h (id int PRIMARY KEY); INSERT INTO h VALUES (1), (2)",
    "BEGIN; ALTER TABLE h ADD v text; UPDATE h SET v = 'v'; COMMIT",
)
PLAIN, REPLICATED = "DDL INCLUDE ALL\n", "DDL INCLUDE ALL\nDDLOPTIONS GETREPLICATES, REPORT\nGETREPLICATES\n"


class Chain(Pipeline):
    """From north to the hub and back, and from the hub to south; schema s of each database."""

    def __init__(self, root: Path, north: str, hub: str, south: str) -> None:
        super().__init__(root, north, south)
        self.hub = hub
        CredentialStore(self.home).add("hub", hub, "")
        for dsn in (north, hub, south):
            self.at(dsn, "CREATE SCHEMA s", "CREATE TABLE s.ends (id int PRIMARY KEY)")

    def add(self, source: str, number: int, target: str, lines: str) -> None:  # type: ignore[override]
        trail = f"./dirdat/e{number}"
        text = f"EXTRACT ext{number}\nUSERIDALIAS {source}\n{lines}GETTRUNCATES\nEXTTRAIL {trail}\nTABLE s.*;\n"
        self.write(f"ext{number}", text)
        self.write(f"rep{number}", f"REPLICAT rep{number}\nUSERIDALIAS {target}\nGETTRUNCATES\nMAP s.*, TARGET s.*;\n")
        self.run(
            f"DBLOGIN USERIDALIAS {source}",
            "ADD SCHEMATRANDATA s",
            f"REGISTER EXTRACT ext{number}",
            f"ADD EXTRACT ext{number}, TRANLOG, BEGIN NOW",
            f"ADD EXTTRAIL {trail}, EXTRACT ext{number}",
            f"DBLOGIN USERIDALIAS {target}",
            f"ADD CHECKPOINTTABLE public.c{number}",
            f"ADD REPLICAT rep{number}, EXTTRAIL {trail}, CHECKPOINTTABLE public.c{number}",
        )

    @staticmethod
    def at(dsn: str, *statements: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]

    def reports(self) -> str:
        return "\n".join(self.home.report(group).read_text()[-2000:] for group in GROUPS)


@pytest.fixture
def chain(tmp_path: Path, north: str, hub: str, south: str) -> Iterator[Chain]:
    made = Chain(tmp_path / "home", north, hub, south)
    yield made
    made.close()


def test_a_chain_carries_rows_and_ddl_on_and_nothing_loops(chain: Chain) -> None:
    chain.add("north", 1, "hub", PLAIN)
    chain.add("hub", 2, "south", REPLICATED)
    chain.add("hub", 3, "north", PLAIN)
    chain.start(*GROUPS)
    chain.at(chain.north, *AT_NORTH, "INSERT INTO s.ends VALUES (1)")
    chain.at(chain.hub, *AT_HUB, "INSERT INTO s.ends VALUES (2)")
    sides = (chain.north, chain.hub, chain.south)

    def arrived() -> bool:
        for group in GROUPS:
            assert "ABENDING" not in chain.home.report(group).read_text(), chain.reports()
        return all(rows_of(dsn, ["s"])["s.ends"][0] == 2 for dsn in sides)

    until("both last rows have arrived everywhere", arrived)
    assert schema_of(chain.hub, ["s"]) == schema_of(chain.north, ["s"]) == schema_of(chain.south, ["s"])
    assert rows_of(chain.hub, ["s"]) == rows_of(chain.north, ["s"]) == rows_of(chain.south, ["s"])
    back = chain.run("STATS EXTRACT ext3, TOTAL")
    assert "s.h" in back
    assert "s.t" not in back


@pytest.mark.parametrize(("lines", "rows"), [("DDLOPTIONS GETREPLICATES\n", 1), ("GETREPLICATES\n", 3)])
def test_rows_and_ddl_of_a_replicat_are_selected_separately(chain: Chain, lines: str, rows: int) -> None:
    """A statement that is not captured runs by hand."""
    chain.add("north", 1, "hub", PLAIN)
    chain.add("hub", 2, "south", PLAIN + lines)
    chain.start("ext1", "rep1", "ext2", "rep2")
    chain.at(chain.south, *([] if "DDL" in lines else ["CREATE TABLE s.t (id int PRIMARY KEY)"]))
    chain.at(chain.north, "BEGIN; CREATE TABLE s.t (id int PRIMARY KEY); INSERT INTO s.t VALUES (1), (2); COMMIT")
    until("the rows are in the middle", lambda: rows_of(chain.hub, ["s"]).get("s.t", (0,))[0] == 2)
    chain.at(chain.hub, "INSERT INTO s.t VALUES (3)")
    until("the last row arrives", lambda: rows_of(chain.south, ["s"]).get("s.t", (0,))[0] == rows)
