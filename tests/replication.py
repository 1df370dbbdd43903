"""A home in which ``one_home/setup.oby`` has set up replication, for tests that disturb it while it runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
from command_line import run_ggshell
from same_rows import unequal_tables
from time_limits import Limit

from ggshell.demo import load
from ggshell.demo.cli import store_aliases
from ggshell.demo.load import has_marker, send_marker
from ggshell.demo.servers import DemoServers
from ggshell.pipeline.compare.tables import ComparedTable

FILES = Path(__file__).parent / "one_home"
TARGETS = (load.SCHEMA, load.MIRROR)
ARRIVAL_SECONDS = 60.0


class Replication:
    """A home in which both routes run, without a Manager that would restart what a test kills."""

    def __init__(self, servers: DemoServers) -> None:
        self.servers = servers
        self.home = servers.home
        self._pause = threading.Event()

    def ggshell(self, *words: str) -> str:
        """Run the command line; returns its output. Fails the test if the command fails."""
        result = run_ggshell("--home", self.home, *words, timeout=90)
        assert result.returncode == 0, f"{words}:\n{result.stdout}{result.stderr}"
        return result.stdout

    def set_up(self) -> None:
        load.prepare_database(self.servers, "north", (load.SCHEMA,))
        load.prepare_database(self.servers, "south", TARGETS)
        with psycopg.connect(self.servers.dsn("north"), autocommit=True) as connection:
            load.load_rows(connection)
        pairs = tuple((load.SCHEMA, schema) for schema in TARGETS)
        load.copy_rows(self.servers.dsn("north"), self.servers.dsn("south"), pairs)
        store_aliases(self.servers)
        shutil.copytree(FILES, self.home / "dirprm", dirs_exist_ok=True)
        (self.home / "dirprm" / "mgr.prm").write_text("PORT 7809\n")
        (self.home / "GLOBALS").write_text("GGSCHEMA ggadmin\n")
        self.ggshell("--auto-manager", str(FILES / "setup.oby"))

    def start_workload(self, seed: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ggshell.demo.workload", "--rate", "150", "--seed", str(seed)]
        return subprocess.Popen([*command, "--dsn", self.servers.dsn("north")], stdout=subprocess.PIPE, text=True)

    def wait(self, seconds: float) -> None:
        """Let the load run for a time that depends on the seed of the test."""
        self._pause.wait(seconds)

    def until(self, what: str, done: Callable[[], bool], seconds: float = ARRIVAL_SECONDS) -> None:
        limit = Limit(seconds)
        while not done():
            assert not limit.has_passed(), f"{what}: not within {seconds:.0f} s\n{self.ggshell('-c', 'INFO ALL')}"
            self._pause.wait(0.05)

    def wait_for_everything(self) -> None:
        """Wait until a transaction committed now has reached both targets."""
        marker = send_marker(self.servers.dsn("north"))
        with psycopg.connect(self.servers.dsn("south"), autocommit=True) as target:
            for schema in TARGETS:
                self.until(f"the last row in {schema}", lambda schema=schema: has_marker(target, schema, marker))  # type: ignore[misc]

    def differences(self) -> dict[str, ComparedTable]:
        """Every table that differs in one of the two targets."""
        source, target = self.servers.dsn("north"), self.servers.dsn("south")
        found: dict[str, ComparedTable] = {}
        for schema in TARGETS:
            found |= unequal_tables(source, target, load.SCHEMA, schema)
        return found
