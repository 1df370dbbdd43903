"""PostgreSQL and MariaDB replicate to each other: nothing loops, conflicts are resolved alike, heartbeats show the lag."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from command_line import run_ggshell
from mariadb_servers import execute, schema_of
from processes import until

from ggshell.connectors.mysql.session import connect
from ggshell.demo.processes import end_processes
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home

TABLE = "CREATE TABLE {} (id int PRIMARY KEY, name varchar(40), balance decimal(12,2), changed {} NOT NULL)"
RULES = """COMPARECOLS (ON UPDATE ALL, ON DELETE ALL),
  RESOLVECONFLICT (INSERTROWEXISTS, (DEFAULT, {wins} (changed))),
  RESOLVECONFLICT (UPDATEROWEXISTS, (money, USEDELTA, COLS (balance)), (DEFAULT, {wins} (changed))),
  RESOLVECONFLICT (UPDATEROWMISSING, (DEFAULT, IGNORE)),
  RESOLVECONFLICT (DELETEROWEXISTS, (DEFAULT, OVERWRITE)),
  RESOLVECONFLICT (DELETEROWMISSING, (DEFAULT, IGNORE))"""


class _Sites:
    """EXT1 and REP1 lead from PostgreSQL to MariaDB, EXT2 and REP2 back. Both sites have the same schema."""

    def __init__(self, root: Path, north: str, mariadb: str) -> None:
        # Heartbeats need another name than that of the PostgreSQL database.
        self.schema = f"m{schema_of(mariadb)}"
        execute(mariadb, f"CREATE DATABASE {self.schema}")
        self.north, self.mariadb = north, f"{mariadb.rpartition('/')[0]}/{self.schema}"
        self.home = Home(root / "home")
        self.home.ensure()
        CredentialStore(self.home).add("north", north, "")
        CredentialStore(self.home).add("maria", self.mariadb, "")
        (self.home.root / "GLOBALS").write_text(f"GGSCHEMA {self.schema}\n")
        for number, here, there, wins in ((1, "north", "maria", "USEMAX"), (2, "maria", "north", "USEMAXEQ")):
            self.home.parameters(f"ext{number}").write_text(
                f"EXTRACT ext{number}\nUSERIDALIAS {here}\nLOGALLSUPCOLS\nEXTTRAIL ./dirdat/e{number}\n"
                f"TABLE {self.schema}.accounts;\n"
            )
            self.home.parameters(f"rep{number}").write_text(
                f"REPLICAT rep{number}\nUSERIDALIAS {there}\n"
                f"MAP {self.schema}.accounts, TARGET {self.schema}.accounts, {RULES.format(wins=wins)};\n"
            )
        self.fetch(f"CREATE SCHEMA {self.schema}")
        self.fetch(TABLE.format(f"{self.schema}.accounts", "timestamp(6)"))
        execute(self.mariadb, TABLE.format("accounts", "datetime(6)"))

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.north, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def run(self, *statements: str) -> str:
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), TZ="UTC")
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def start(self) -> str:
        checks = f"{self.schema}.checks"
        return self.run(
            "DBLOGIN USERIDALIAS north",
            f"ADD TRANDATA {self.schema}.accounts, ALLCOLS",
            f"ADD CHECKPOINTTABLE {checks}",
            "ADD HEARTBEATTABLE, FREQUENCY 1",
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/e1, EXTRACT ext1",
            f"ADD REPLICAT rep2, EXTTRAIL ./dirdat/e2, CHECKPOINTTABLE {checks}",
            "DBLOGIN USERIDALIAS maria",
            f"ADD CHECKPOINTTABLE {checks}",
            "ADD HEARTBEATTABLE, FREQUENCY 1",
            "ADD EXTRACT ext2, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/e2, EXTRACT ext2",
            f"ADD REPLICAT rep1, EXTTRAIL ./dirdat/e1, CHECKPOINTTABLE {checks}",
            "START ER *",
        )

    def work(self, seed: int, count: int) -> None:
        """Changes at both sites at the same time, often of the same rows. Each key is inserted at one site only."""
        chance = random.Random(seed)
        with (
            psycopg.connect(self.north, autocommit=True) as here,
            closing(connect(self.mariadb)) as there,
            there.cursor() as cursor,
        ):
            sites = ((here.execute, f"{self.schema}.accounts", "clock_timestamp() AT TIME ZONE 'UTC'"),)
            other = ((cursor.execute, "accounts", "UTC_TIMESTAMP(6)"),)
            for number in range(count):
                for site, (run, table, now) in enumerate((*sites, *other)):
                    key = 2 * chance.randint(0, 40) + chance.randint(0, 1)
                    what = chance.random()
                    if what < 0.3:
                        new = 1000 * seed + 2 * number + site + 100
                        run(f"INSERT INTO {table} VALUES ({new}, 'n{number}', 1, {now})")
                    elif what < 0.9:
                        run(
                            f"UPDATE {table} SET name = 'u{number}.{site}', balance = balance + 1, changed = {now}"
                            f" WHERE id = {key}"
                        )
                    else:
                        run(f"DELETE FROM {table} WHERE id = {key}")

    def rows(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        text = "SELECT id, name, balance, changed FROM {} ORDER BY id"
        return self.fetch(text.format(f"{self.schema}.accounts")), execute(self.mariadb, text.format("accounts"))


@pytest.fixture
def sites(tmp_path: Path, north: str, mariadb: str) -> Iterator[_Sites]:
    found = _Sites(tmp_path, north, mariadb)
    yield found
    end_processes(found.home.root)
    execute(found.mariadb, f"DROP DATABASE {found.schema}")


def test_two_kinds_of_databases_replicate_to_each_other(sites: _Sites, request: pytest.FixtureRequest) -> None:
    sites.start()
    values = ", ".join(f"({number}, 'first', 0, '2024-01-01')" for number in range(82))
    sites.fetch(f"INSERT INTO {sites.schema}.accounts VALUES {values}")
    until("the first rows arrive", lambda: sites.rows()[0] == sites.rows()[1])
    sites.work(1, 300 * (request.config.getoption("--rounds") or 1))
    until("both sites are equal", lambda: sites.rows()[0] == sites.rows()[1], 60)
    assert len(sites.rows()[0]) > 100
    counts = sites.run("STATS REPLICAT rep1, TOTAL", "STATS REPLICAT rep2, TOTAL")
    assert "accounts" in counts
    until("both directions show their lag", lambda: _lags(sites) == {True}, 30)


def test_an_extract_of_mariadb_captures_what_a_replicat_applied_with_getreplicates(sites: _Sites) -> None:
    sites.start()
    sites.home.parameters("ext3").write_text(
        f"EXTRACT ext3\nUSERIDALIAS maria\nGETREPLICATES\nEXTTRAIL ./dirdat/e3\nTABLE {sites.schema}.accounts;\n"
    )
    sites.run(
        "DBLOGIN USERIDALIAS maria",
        "ADD EXTRACT ext3, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/e3, EXTRACT ext3",
        "START EXTRACT ext3",
    )
    sites.fetch(f"INSERT INTO {sites.schema}.accounts VALUES (1, 'north', 0, '2024-01-01')")
    until("the row is in MariaDB", lambda: len(sites.rows()[1]) == 1)
    execute(sites.mariadb, "INSERT INTO accounts VALUES (2, 'maria', 0, '2024-01-01')")

    def counted(group: str, rows: int) -> bool:
        found = sites.run(f"STATS EXTRACT {group}, TOTAL, TABLE {sites.schema}.accounts")
        return re.search(rf"Total inserts +{rows}\.00", found) is not None

    until("both rows are captured", lambda: counted("ext3", 2))
    assert counted("ext2", 1)


def _lags(sites: _Sites) -> set[bool]:
    found = [execute(sites.mariadb, "SELECT incoming_lag, outgoing_lag FROM gg_lag WHERE outgoing_path IS NOT NULL")]
    found.append(
        sites.fetch(f"SELECT incoming_lag, outgoing_lag FROM {sites.schema}.gg_lag WHERE outgoing_path IS NOT NULL")
    )
    return {
        bool(rows) and all(value is not None and 0 <= value < 20 for row in rows for value in row) for rows in found
    }
