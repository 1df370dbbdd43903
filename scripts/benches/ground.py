"""The ground a bench stands on: two servers and a home in a temporary folder, and ggshell run as a user runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from ggshell.demo import load
from ggshell.demo.cli import store_aliases
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import DemoServers, open_servers

TABLE = """
CREATE SCHEMA bench AUTHORIZATION ggadmin;
SET ROLE ggadmin;
CREATE TABLE bench.rows (id bigint PRIMARY KEY, customer integer, amount numeric(12, 2), placed timestamptz, note text);
CREATE PROCEDURE bench.fill(first bigint, transactions int, size int) LANGUAGE plpgsql AS $$
BEGIN
    FOR t IN 0 .. transactions - 1 LOOP
        INSERT INTO bench.rows SELECT first + t::bigint * size + i, i % 1000, i * 1.25, '2026-01-01', repeat('x', 64)
          FROM generate_series(0, size - 1) i;
        COMMIT;
    END LOOP;
END $$;
RESET ROLE;
"""
_CLOCK = threading.Event()


class Failed(Exception):  # noqa: N818
    """A side of a bench did not do its part; the message says which and why."""


def wait_until(what: str, done: Callable[[], Any], *, seconds: float = 300.0, every: float = 0.05) -> Any:
    """Ask until the answer is true; that answer. Raises Failed when the time is over."""
    limit = time.monotonic() + seconds
    while True:
        answer = done()
        if answer:
            return answer
        if time.monotonic() > limit:
            raise Failed(f"{what}: not within {seconds:.0f} s")
        _CLOCK.wait(every)


class Ground:
    """Servers, home and command line of one bench."""

    def __init__(self, servers: DemoServers) -> None:
        self.servers = servers
        self.home = servers.home

    def connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self.servers.dsn(name), autocommit=True)

    def one(self, name: str, query: str, parameters: tuple[Any, ...] = ()) -> Any:
        """The first column of a query's first row, or None."""
        with self.connect(name) as connection:
            row = connection.execute(query, parameters).fetchone()
            return row[0] if row else None

    def end_of_log(self) -> str:
        return str(self.one("north", "SELECT pg_current_wal_insert_lsn()"))

    def fill(self, transactions: int, size: int, *, first: int = 1) -> int:
        """Insert rows in so many transactions of one size; the last id."""
        with self.connect("north") as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("CALL bench.fill(%s, %s, %s)", (first, transactions, size))
            connection.execute("CHECKPOINT")
        return first + transactions * size - 1

    def program(self, name: str) -> str:
        """A PostgreSQL program of the servers' own binaries."""
        return str(self.servers.north.binaries / name)

    def parameters(self, group: str, *lines: str) -> None:
        folder = self.home / "dirprm"
        folder.mkdir(exist_ok=True)
        (folder / f"{group}.prm").write_text("\n".join(lines) + "\n")

    def obey(self, *statements: str) -> str:
        """Run statements as a script; the output. Raises Failed with it when one is refused."""
        script = self.home / "bench.oby"
        script.write_text("\n".join(statements) + "\n")
        command = [ggshell(), "--home", str(self.home), "--auto-manager", str(script)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if result.returncode != 0:
            raise Failed(f"ggshell refused the script:\n{result.stdout}{result.stderr}")
        return result.stdout

    def extract(self, group: str, trail: str) -> None:
        """Add an Extract on north's log from now on."""
        self.parameters(group, f"EXTRACT {group}", "USERIDALIAS north", f"EXTTRAIL {trail}", "TABLE bench.*;")
        self.obey(
            "DBLOGIN USERIDALIAS north",
            "ADD TRANDATA bench.*",
            f"REGISTER EXTRACT {group}",
            f"ADD EXTRACT {group}, TRANLOG, BEGIN NOW",
            f"ADD EXTTRAIL {trail}, EXTRACT {group}, MEGABYTES 500",
        )

    def replicat(self, group: str, trail: str, mapping: str = "MAP bench.*, TARGET bench.*;", option: str = "") -> None:
        """Add a Replicat that applies a whole trail to south; ``option``: its kind, or NODBCHECKPOINT."""
        self.parameters(group, f"REPLICAT {group}", "USERIDALIAS south", mapping)
        table = "" if option == "NODBCHECKPOINT" else ", CHECKPOINTTABLE ggadmin.ggs_checkpoint"
        kind, last = ("", ", NODBCHECKPOINT") if option == "NODBCHECKPOINT" else (f", {option}" if option else "", "")
        added = f"{kind}, EXTTRAIL {trail}{table}{last}"
        self.obey(
            "DBLOGIN USERIDALIAS south",
            f"ADD REPLICAT {group}{added}",
        )

    def checkpoint_table(self) -> None:
        self.obey("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE ggadmin.ggs_checkpoint")

    def process_id(self, group: str, kind: str) -> int:
        """The process of a running group (kind ``pce`` or ``pcr``)."""
        return int(json.loads((self.home / "dirpcs" / f"{group.upper()}.{kind}").read_text())["pid"])

    def wait_for_slot(self, slot: str, position: str, *, seconds: float = 300.0) -> None:
        """Wait until a slot's reader has confirmed everything up to a position."""
        query = "SELECT true FROM pg_replication_slots WHERE slot_name = %s AND confirmed_flush_lsn >= %s"
        with self.connect("north") as connection:
            wait_until(
                f"slot {slot} read to {position}",
                lambda: connection.execute(query, (slot, position)).fetchone(),
                seconds=seconds,
            )

    def wait_for_count(self, table: str, count: int, *, seconds: float = 300.0) -> float:
        """Wait until so many rows are visible in south; the moment (time.time) at which they were."""
        with self.connect("south") as connection:
            query = f"SELECT count(*) FROM {table}"
            wait_until(
                f"{count} rows in {table}",
                lambda: connection.execute(query).fetchone() == (count,),
                seconds=seconds,
                every=0.02,
            )
        return time.time()

    def wait_for_row(self, table: str, number: int, *, seconds: float = 300.0) -> float:
        """Wait until a row is visible in south; the moment (time.time) at which it was."""
        with self.connect("south") as connection:
            query = f"SELECT 1 FROM {table} WHERE id = {number}"
            wait_until(
                f"row {number} in {table}", lambda: connection.execute(query).fetchone(), seconds=seconds, every=0.005
            )
        return time.time()


def ggshell() -> str:
    """The console script next to the running Python."""
    return str(Path(sys.executable).with_name("ggshell"))


@contextmanager
def ground() -> Iterator[Ground]:
    """Two fresh servers with the bench table, and a home with the aliases; everything ends with the block."""
    home = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    home.chmod(0o755)
    servers = open_servers(home)
    try:
        servers.start()
        for name in ("north", "south"):
            load.prepare_database(servers, name, ())
            with psycopg.connect(servers.dsn(name), autocommit=True) as connection:
                connection.execute(TABLE)
        store_aliases(servers)
        yield Ground(servers)
    finally:
        end_processes(home)
        servers.remove()
        shutil.rmtree(home, ignore_errors=True)
