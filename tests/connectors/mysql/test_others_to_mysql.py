"""From PostgreSQL to MariaDB, through the shell and real processes, by each kind of Replicat, with kills of the Replicat."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from command_line import run_ggshell
from mariadb_servers import DURABLE, UUID, execute, private_server, schema_of
from processes import until

from ggshell.demo.mariadb_server import REPLICATION_SETTINGS
from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

SOURCE = """CREATE TABLE shop.orders (id int PRIMARY KEY, customer text, amount numeric(12,2), ratio double precision,
    created timestamp(6), changed timestamptz(3), day date, flag boolean, data bytea, document jsonb, uid uuid)"""
TARGET = f"""CREATE TABLE orders (id int PRIMARY KEY, customer varchar(200), amount decimal(12,2), ratio double,
    created datetime(6), changed datetime(3), day date, flag tinyint(1), data blob, document json, uid {UUID})"""
ROW = (
    "INSERT INTO shop.orders SELECT n, 'Zoë ' || n, n * 1.25, n / 7.0, '2024-02-29 23:59:59.999999',"
    " '2024-03-31 01:30:00.123+02', '9999-12-31', n %% 2 = 0, decode('00ff5c', 'hex'), '{\"a\": [1, null]}',"
    " '6ccd780c-baba-1026-9564-5b8c656024db' FROM generate_series(%s::int, %s::int) n"
)


class _Home:
    def __init__(self, root: Path, source: str, target: str) -> None:
        self.home, self.source, self.target = Home(root / "home"), source, target
        self.home.ensure()
        CredentialStore(self.home).add("north", source, "")
        self.home.parameters("ext1").write_text(
            "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nCHECKPOINTSECS 1\nTABLE shop.*;\n"
        )
        self.fetch("CREATE SCHEMA shop")
        self.fetch(SOURCE)
        execute(target, TARGET)

    def fetch(self, statement: str, values: tuple[int, ...] | None = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.source, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def run(self, *statements: str) -> str:
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), TZ="UTC")
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def start(self, kind: str) -> None:
        schema = schema_of(self.target)
        more = "APPLY_PARALLELISM 3\n" if kind == "PARALLEL, " else ""
        clause = ", THREADRANGE (1-3)" if kind.startswith("COORDINATED") else ""
        self.home.parameters("rep1").write_text(
            f"REPLICAT rep1\nTARGETDB {self.target}\nCHECKPOINTSECS 1\n{more}MAP shop.*, TARGET {schema}.*{clause};\n"
        )
        self.run(
            "DBLOGIN USERIDALIAS north",
            "ADD TRANDATA shop.*",
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1",
            "START EXTRACT ext1",
            f"DBLOGIN SOURCEDB {self.target}",
            f"ADD CHECKPOINTTABLE {schema}.checks",
            f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE {schema}.checks",
            "START REPLICAT rep1",
        )

    def kill(self) -> None:
        process = state_of(self.home.process("REP1", GroupKind.REPLICAT))[1]
        if process is not None:
            os.kill(process.pid, signal.SIGKILL)
            self.wait_for(ProcessState.ABENDED)

    def wait_for(self, state: ProcessState) -> None:
        until(f"REP1 is {state}", lambda: state_of(self.home.process("REP1", GroupKind.REPLICAT))[0] is state)

    def sums(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The number of rows and some sums, of the source and of the target."""
        text = "SELECT COUNT(*), SUM(id), {} FROM {}"
        mine = self.fetch(text.format("SUM(amount), COUNT(DISTINCT customer)", "shop.orders"))
        return mine, execute(self.target, text.format("SUM(amount), COUNT(DISTINCT customer)", "orders"))


@pytest.fixture
def home(tmp_path: Path, north: str, mariadb: str) -> Iterator[_Home]:
    found = _Home(tmp_path, north, mariadb)
    yield found
    end_processes(found.home.root)


@pytest.mark.parametrize("kind", ["", "PARALLEL, ", "COORDINATED MAXTHREADS 3, "])
def test_changes_arrive_once_although_the_replicat_is_killed(home: _Home, kind: str) -> None:
    home.start(kind)
    for first in range(0, 3000, 500):
        home.fetch(ROW, (first, first + 499))
        home.fetch(
            "UPDATE shop.orders SET amount = amount + 1, customer = 'Jo ' || id WHERE id %% 3 = %s", (first % 3,)
        )
        home.fetch("UPDATE shop.orders SET id = id + 100000 WHERE id BETWEEN %s AND %s", (first, first + 9))
        home.fetch("DELETE FROM shop.orders WHERE id BETWEEN %s AND %s", (first + 20, first + 39))
        if first in (500, 1500):
            home.kill()
            home.run("START REPLICAT rep1")
    until("the target is equal", lambda: home.sums()[0] == home.sums()[1], 60)
    mine = home.fetch(
        "SELECT ratio, created::text, (changed AT TIME ZONE 'UTC')::text, day::text, flag::int, data, document::text, uid::text"
        " FROM shop.orders WHERE id = 100003"
    )
    theirs = execute(
        home.target,
        "SELECT ratio, CAST(created AS CHAR), CAST(changed AS CHAR), CAST(day AS CHAR), flag, data, document, uid"
        " FROM orders WHERE id = 100003",
    )
    assert mine == theirs
    assert home.fetch("SELECT count(*) FROM shop.orders") == [(2880,)]
    listed = home.run(f"DBLOGIN SOURCEDB {home.target}", f"INFO CHECKPOINTTABLE {schema_of(home.target)}.checks")
    assert "REP1" in listed


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_if_the_target_server_crashes(
    tmp_path: Path, north: str, mariadb_binaries: Path, port: int
) -> None:
    with private_server(port) as server:
        execute(server.login(), "CREATE DATABASE shop")
        home = _Home(tmp_path, north, server.login("shop"))
        try:
            home.start("")
            for first in range(0, 2000, 500):
                home.fetch(ROW, (first, first + 499))
                home.fetch("UPDATE shop.orders SET amount = amount + 1 WHERE id % 2 = 0")
                if first in (500, 1000):
                    server.kill()
                    home.fetch("DELETE FROM shop.orders WHERE id % 50 = 7")
                    server.start({**REPLICATION_SETTINGS, **DURABLE})
            until("the target is equal", lambda: home.sums()[0] == home.sums()[1], 90)
        finally:
            end_processes(home.home.root)
