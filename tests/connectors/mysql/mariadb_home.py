"""A home with an Extract that reads the log of a MariaDB server, through the shell and real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from command_line import run_ggshell
from mariadb_servers import execute, schema_of
from processes import until, until_state

from ggshell.demo.processes import end_processes
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.record.image import decode_image
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

EXT1 = ("EXT1", GroupKind.EXTRACT)


class MariadbHome:
    """Extract EXT1 captures the tables of one database of MariaDB into ./dirdat/ea; their first column is a number."""

    def __init__(self, root: Path, login: str, more: str = "") -> None:
        self.home = Home(root / "home")
        self.home.ensure()
        self.more = more
        self.lead_to(login)

    def lead_to(self, login: str) -> None:
        """Set the login of the Extract."""
        self.login, self.schema = login, schema_of(login)
        options = f"EXTTRAIL ./dirdat/ea\nCHECKPOINTSECS 1\nGETTRUNCATES\n{self.more}"
        text = f"EXTRACT ext1\nSOURCEDB {login}\n{options}TABLE {self.schema}.*;\n"
        self.home.parameters("ext1").write_text(text)

    def run(self, *statements: str, fails: bool = False) -> str:
        """Run statements as a batch; returns everything printed."""
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), TZ="UTC")
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def add(self, begin: str = "BEGIN NOW") -> str:
        return self.run(
            f"DBLOGIN SOURCEDB {self.login}",
            f"ADD EXTRACT ext1, TRANLOG, {begin}",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        )

    def start(self) -> None:
        self.run("START EXTRACT ext1")

    def execute(self, *statements: str) -> None:
        execute(self.login, *statements)

    def rows(self) -> list[tuple[int, bytes | None]]:
        """The first two columns of every row in the durable part of the trail; zero for a truncation."""
        found: list[tuple[int, bytes | None]] = []
        reader = TrailReader(TrailName.parse("./dirdat/ea", self.home.root))
        try:
            while (batch := reader.read()) is not None:
                for row in range(len(batch)):
                    image = decode_image(batch.images(row)[1])
                    found.append((int(image[0][1] or b"0") if image else 0, image[1][1] if len(image) > 1 else None))
        finally:
            reader.close()
        return found

    def ids(self) -> list[int]:
        return [number for number, _ in self.rows()]

    def last_csn(self) -> str:
        """The CSN of the last transaction in the durable part of the trail."""
        reader, csn = TrailReader(TrailName.parse("./dirdat/ea", self.home.root)), ""
        try:
            while (batch := reader.read()) is not None:
                csn = str(batch.pieces[-1].header.csn)
        finally:
            reader.close()
        return csn

    def wait_for_ids(self, ids: list[int], seconds: float = 60) -> None:
        """Wait until the trail has that many rows; they must be these, in this order."""
        until(f"{len(ids)} rows in the trail", lambda: len(self.ids()) >= len(ids) or self.has_abended, seconds)
        assert self.ids() == ids, self.home.report("EXT1").read_text()[-2000:]

    def wait_for_ids_at_least(self, count: int) -> None:
        until(f"{count} rows in the trail", lambda: len(self.ids()) >= count or self.has_abended)

    @property
    def has_abended(self) -> bool:
        return state_of(self.home.process(*EXT1))[0] is ProcessState.ABENDED

    @property
    def checkpoint(self) -> Checkpoint:
        return checkpoints.load(self.home.checkpoint(*EXT1))

    def abended_report(self) -> str:
        """Wait until the Extract has abended. Returns its report."""
        until_state(self.home, *EXT1, ProcessState.ABENDED)
        return self.home.report("EXT1").read_text()

    def kill(self) -> None:
        """Kill the Extract, and wait until it has ended."""
        process = state_of(self.home.process(*EXT1))[1]
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        until(
            "the Extract has ended",
            lambda: state_of(self.home.process(*EXT1))[0] not in (ProcessState.STARTING, ProcessState.RUNNING),
        )

    def close(self) -> None:
        end_processes(self.home.root)
