"""A complete pipeline with real processes, from a table in north to the same table in south."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
from command_line import run_ggshell
from processes import until, until_state
from trail_kit import cut_records

from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.trail.name import TrailName
from ggshell.trail.record import decode_record

TABLE = "CREATE TABLE {schema}.items (id int PRIMARY KEY, name text, price numeric)"
EXT1, REP1 = ("EXT1", GroupKind.EXTRACT), ("REP1", GroupKind.REPLICAT)
ALIVE = (ProcessState.STARTING, ProcessState.RUNNING)

ALL_APPLIERS = "MIN_APPLY_PARALLELISM 2\n"
"""A parallel Replicat uses its appliers from the start: a test is too short for it to try them."""


class Pipeline:
    """Extract EXT1 writes ./dirdat/ea, Replicat REP1 applies it: a.items in north becomes b.items in south."""

    def __init__(self, root: Path, north: str, south: str) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.north, self.south = north, south
        store = CredentialStore(self.home)
        for alias, dsn in (("north", north), ("south", south)):
            store.add(alias, dsn, "")
        self.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
        self.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{ALL_APPLIERS}MAP a.*, TARGET b.*;\n")
        self.in_north("CREATE SCHEMA a", TABLE.format(schema="a"))
        self.in_south("CREATE SCHEMA b", TABLE.format(schema="b"))

    def write(self, group: str, text: str) -> None:
        self.home.parameters(group).write_text(text)

    def in_north(self, *statements: str) -> list[tuple[Any, ...]]:
        return _execute(self.north, statements)

    def in_south(self, *statements: str) -> list[tuple[Any, ...]]:
        return _execute(self.south, statements)

    def run(self, *statements: str, fails: bool = False) -> str:
        """Run statements as a batch; returns the output."""
        return self._run([], statements, fails=fails)

    def run_as(self, form: str, *statements: str) -> str:
        """Run statements as a batch with an output format."""
        return self._run(["--format", form], statements, fails=False)

    def _run(self, options: list[str], statements: tuple[str, ...], *, fails: bool) -> str:
        result = run_ggshell("--home", self.home.root, "--auto-manager", *options, "-c", "\n".join(statements))
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def add(self, tables: str = "a.items", kind: str = "") -> None:
        """Add all groups without starting them. ``kind``: words of ADD REPLICAT before EXTTRAIL, with their comma."""
        self.run(
            "DBLOGIN USERIDALIAS north",
            f"ADD TRANDATA {tables}",
            "REGISTER EXTRACT ext1",
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
            "DBLOGIN USERIDALIAS south",
            "ADD CHECKPOINTTABLE b.checks",
            f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
        )

    def start_both_directions(self, extract: str = "", replicat: str = "") -> None:
        """Replicate schema s from north to south (EXT1, REP1) and back (EXT2, REP2); with extra lines in their files."""
        statements: list[str] = []
        for number, here, there in ((1, "north", "south"), (2, "south", "north")):
            trail = f"./dirdat/e{number}"
            self.write(
                f"ext{number}", f"EXTRACT ext{number}\nUSERIDALIAS {here}\n{extract}EXTTRAIL {trail}\nTABLE s.*;\n"
            )
            self.write(f"rep{number}", f"REPLICAT rep{number}\nUSERIDALIAS {there}\n{replicat}MAP s.*, TARGET s.*;\n")
            statements += [
                f"DBLOGIN USERIDALIAS {here}",
                "ADD TRANDATA s.*, ALLCOLS",
                f"REGISTER EXTRACT ext{number}",
                f"ADD EXTRACT ext{number}, TRANLOG, BEGIN NOW",
                f"ADD EXTTRAIL {trail}, EXTRACT ext{number}",
                f"DBLOGIN USERIDALIAS {there}",
                f"ADD CHECKPOINTTABLE public.c{number}",
                f"ADD REPLICAT rep{number}, EXTTRAIL {trail}, CHECKPOINTTABLE public.c{number}",
            ]
        self.run(*statements)
        self.start("ext1", "ext2", "rep1", "rep2")

    def start(self, *groups: str) -> None:
        self.run(*(f"START {group}" for group in groups or ("ext1", "rep1")))

    def abended_report(self, group: tuple[str, GroupKind]) -> str:
        """Wait until a group has abended. Returns its report."""
        until_state(self.home, *group, ProcessState.ABENDED)
        return self.home.report(group[0]).read_text()

    def is_running(self, group: tuple[str, GroupKind]) -> bool:
        return state_of(self.home.process(*group))[0] in ALIVE

    def csns(self, count: int) -> list[str]:
        """Wait until a number of transactions is in the trail; returns their CSNs."""
        name = TrailName.parse("./dirdat/ea", self.home.root)

        def found() -> list[str]:
            files = [name.file(seqno).read_bytes() for seqno in name.sequences()]
            records = [decode_record(data) for content in files for _, data in cut_records(content)]
            return [each.tokens["L"].decode() for each in records if "L" in each.tokens]

        until(f"{count} transactions are in the trail", lambda: len(found()) >= count)
        return found()

    def insert(self, *numbers: int) -> None:
        """Insert a row into north for each number, each in its own transaction."""
        for number in numbers:
            self.in_north(f"INSERT INTO a.items VALUES ({number}, 'row {number}', {number})")

    def ids(self) -> list[int]:
        """The keys of the rows in south."""
        return [row[0] for row in self.in_south("SELECT id FROM b.items ORDER BY id")]

    def wait_for_rows(self, count: int) -> None:
        """Wait until ``count`` rows are in south."""
        until(f"{count} rows arrive", lambda: self.in_south("SELECT count(*) FROM b.items")[0][0] == count)

    def assert_same_rows(self) -> None:
        """Assert that source and target hold the same rows."""
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
