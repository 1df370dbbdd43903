"""One short way, from a table in north to its twin in south, with real processes; for tests that spoil it somewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from processes import until, until_state

from ggshell.demo.processes import end_processes
from ggshell.process.state import ProcessState, state_of
from ggshell.store.checkpoint import GroupType
from ggshell.store.credential import CredentialStore
from ggshell.store.home import Home

TABLE = "CREATE TABLE {schema}.items (id int PRIMARY KEY, name text, price numeric)"
EXT1, REP1 = ("EXT1", GroupType.EXTRACT), ("REP1", GroupType.REPLICAT)
ALIVE = (ProcessState.STARTING, ProcessState.RUNNING)


class Way:
    """Extract EXT1 writes ./dirdat/ea, Replicat REP1 applies it: a.items in north becomes b.items in south."""

    def __init__(self, root: Path, north: str, south: str) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.north, self.south = north, south
        store = CredentialStore(self.home)
        for alias, dsn in (("north", north), ("south", south)):
            store.add(alias, dsn, "")
        self.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
        self.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")
        self.in_north("CREATE SCHEMA a", TABLE.format(schema="a"))
        self.in_south("CREATE SCHEMA b", TABLE.format(schema="b"))

    def write(self, group: str, text: str) -> None:
        self.home.parameters(group).write_text(text)

    def in_north(self, *statements: str) -> list[tuple[Any, ...]]:
        return _execute(self.north, statements)

    def in_south(self, *statements: str) -> list[tuple[Any, ...]]:
        return _execute(self.south, statements)

    def run(self, *statements: str, fails: bool = False) -> str:
        """Run statements as a batch; everything that was printed."""
        return self._run([], statements, fails=fails)

    def run_as(self, form: str, *statements: str) -> str:
        """The same with an output format."""
        return self._run(["--format", form], statements, fails=False)

    def _run(self, options: list[str], statements: tuple[str, ...], *, fails: bool) -> str:
        command = [sys.executable, "-m", "ggshell.shell.cli", "--home", str(self.home.root), "--auto-manager", *options]
        text = "\n".join(statements)
        result = subprocess.run([*command, "-c", text], capture_output=True, text=True, check=False, timeout=60)
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def add(self) -> None:
        """Add everything; nothing runs yet."""
        self.run(
            "DBLOGIN USERIDALIAS north",
            "ADD TRANDATA a.items",
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
            "DBLOGIN USERIDALIAS south",
            "ADD CHECKPOINTTABLE b.checks",
            "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
        )

    def start(self, *groups: str) -> None:
        self.run(*(f"START {group}" for group in groups or ("ext1", "rep1")))

    def ends(self, group: tuple[str, GroupType]) -> str:
        """Wait for a group to abend; its report."""
        until_state(self.home, *group, ProcessState.ABENDED)
        return self.home.report(group[0]).read_text()

    def is_running(self, group: tuple[str, GroupType]) -> bool:
        return state_of(self.home.process(*group))[0] in ALIVE

    def arrives(self, count: int) -> None:
        """Wait until so many rows are in south."""
        until(f"{count} rows arrive", lambda: self.in_south("SELECT count(*) FROM b.items")[0][0] == count)

    def same(self) -> None:
        """Source and target hold the same rows."""
        rows = "SELECT * FROM {}.items ORDER BY id"
        assert self.in_north(rows.format("a")) == self.in_south(rows.format("b"))

    def close(self) -> None:
        end_processes(self.home.root)
        shutil.rmtree(self.home.root, ignore_errors=True)


def _execute(dsn: str, statements: tuple[str, ...]) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
