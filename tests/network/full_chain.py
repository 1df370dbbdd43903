"""Every kind of process between two homes at once: from a table of one database over four ways, one of them into another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
from command_line import run_ggshell
from processes import until, until_state
from service_client import RunningService
from trail_kit import read_all
from two_homes import TwoHomes

from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState, read_process_file, state_of
from ggshell.record.image import decode_image
from ggshell.trail.name import TrailName

OTHER_CLOCK = Path(__file__).parent / "other_clock"
TABLE = "CREATE SCHEMA a; CREATE TABLE a.items (id int PRIMARY KEY, name text)"
TRAILS = ("da", "db", "dc", "dd")
"""The trails in the target home: of a path, of a pump, of a path that the target starts, and of a primary Extract."""


class Member(NamedTuple):
    """A process of the chain. ``kind``: None for a home's Manager and its service."""

    at_source: bool
    name: str
    kind: GroupKind | None = None


MEMBERS = (
    Member(True, "EXT1", GroupKind.EXTRACT),
    Member(True, "EXT2", GroupKind.EXTRACT),
    Member(True, "PMP1", GroupKind.EXTRACT),
    Member(True, "DP1", GroupKind.PATH),
    Member(False, "RP1", GroupKind.RECVPATH),
    Member(False, "REP1", GroupKind.REPLICAT),
    *(Member(at_source, name) for at_source in (True, False) for name in ("MANAGER", "SERVICE")),
)


class _OtherService(RunningService):
    """A home on a machine with another clock."""

    clock: float

    def run(self, statement: str, code: int = 0) -> str:
        path = os.pathsep.join((str(OTHER_CLOCK), os.environ.get("PYTHONPATH", "")))
        environment = {**os.environ, "PYTHONPATH": path, "GGSHELL_TEST_CLOCK": str(self.clock)}
        words = [sys.executable, "-m", "ggshell", "--home", str(self.home), "--auto-manager", "-c", statement]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


class FullChain(TwoHomes):
    """EXT1 writes a trail that DP1, PMP1 and RP1 copy; EXT2 writes into the target home; REP1 applies what DP1 copies."""

    def __init__(self, folder: Path, north: str, south: str, *, clock: float = 0) -> None:
        """``clock``: by how many seconds the clock of the target's machine differs."""
        self.clock = clock
        super().__init__(folder)
        self.origin = RunningService(self.source, "")
        Peers(Home(self.target.home)).alter("source", address=f"127.0.0.1:{self.origin.port}")
        self.north, self.south = (psycopg.connect(each, autocommit=True) for each in (north, south))
        for name, home, dsn in (("north", self.source, north), ("south", self.target.home, south)):
            CredentialStore(Home(home)).add(name, dsn, "")
        for connection in (self.north, self.south):
            connection.execute(TABLE)
        self.inserted = 0
        self._start_source()
        self._start_target()

    def _start_source(self) -> None:
        remote = f"RMTHOST 127.0.0.1, MGRPORT {self.target.port}\nRMTTRAIL ./dirdat/"
        for name, text in {
            "ext1": "USERIDALIAS north\nEXTTRAIL ./dirdat/ea\n",
            "ext2": f"USERIDALIAS north\n{remote}dd\n",
            "pmp1": f"PASSTHRU\n{remote}db\n",
        }.items():
            Home(self.source).parameters(name).write_text(f"EXTRACT {name}\n{text}TABLE a.*;\n")
        extracts = "; ".join(
            f"REGISTER EXTRACT {each}; ADD EXTRACT {each}, TRANLOG, BEGIN NOW" for each in ("ext1", "ext2")
        )
        self.run(
            f"DBLOGIN USERIDALIAS north; ADD TRANDATA a.items; {extracts}; ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1"
            "; ADD RMTTRAIL ./dirdat/dd, EXTRACT ext2; ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea"
            f"; ADD RMTTRAIL ./dirdat/db, EXTRACT pmp1; ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {self.url()}"
            "; START EXTRACT *; START DISTPATH dp1"
        )

    def _start_target(self) -> None:
        source = f"wss://127.0.0.1:{self.origin.port}/services/v2/sources?trail=ea"
        Home(self.target.home).parameters("rep1").write_text("REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET a.*;\n")
        self.run_there(
            "DBLOGIN USERIDALIAS south; ADD CHECKPOINTTABLE a.checkpoints"
            "; ADD REPLICAT rep1, EXTTRAIL ./dirdat/da, CHECKPOINTTABLE a.checkpoints"
            f"; ADD RECVPATH rp1, SOURCE {source}, TARGET trail://localhost:9103/services/v2/targets?trail=dc"
            "; START RECVPATH rp1; START REPLICAT rep1"
        )

    def service(self, home: Path, parameters: str) -> RunningService:
        kind = type("OtherService", (_OtherService,), {"clock": self.clock}) if self.clock else RunningService
        return kind(home, parameters)

    def run_there(self, statement: str) -> str:
        """Run a statement on the target home."""
        if self.clock:
            return self.target.run(statement)
        done = run_ggshell("--home", self.target.home, "--auto-manager", "-c", statement)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def load(self) -> Iterator[threading.Event]:
        """Insert rows one by one all the time; the event is one to wait with."""
        ended = threading.Event()

        def insert() -> None:
            while not ended.wait(0.005):
                self.insert(1)

        thread = threading.Thread(target=insert)
        thread.start()
        try:
            yield ended
        finally:
            ended.set()
            thread.join()

    def insert(self, rows: int) -> None:
        for _ in range(rows):
            self.north.execute("INSERT INTO a.items VALUES (%s, %s)", [self.inserted, f"row {self.inserted}"])
            self.inserted += 1

    def kill(self, member: Member) -> None:
        """Kill a process, and start it again."""
        root = self.source if member.at_source else self.target.home
        home, run = Home(root), self.run if member.at_source else self.run_there
        if member.kind is not None:
            file = home.process(member.name, member.kind)
        else:
            file = home.manager if member.name == "MANAGER" else home.service
        found = read_process_file(file)
        assert found is not None, member
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)
        if member.kind is not None:
            until_state(home, member.name, member.kind, ProcessState.ABENDED)
            run(f"START {member.kind} {member.name}")
            return
        if member.name == "MANAGER" or state_of(home.manager)[0] is not ProcessState.RUNNING:
            run_ggshell(
                "--home", root, "-c", f"START {member.name}"
            )  # unless a living Manager has restarted the service
        until(f"{member} runs again", lambda: _pid(file) not in (0, found.pid))

    def until_all_arrived(self, seconds: float = 120) -> None:
        """Wait until every inserted row is in each trail of the target, in order and once, and in its table."""
        for trail in TRAILS:
            until(f"all rows are in {trail}", lambda trail=trail: len(self.keys(trail)) >= self.inserted, seconds)  # type: ignore[misc]
            assert self.keys(trail) == list(range(self.inserted)), trail
        until("all rows are applied", lambda: self._applied() == self.inserted, seconds)

    def keys(self, trail: str) -> list[int]:
        """The keys of the inserted rows in a trail of the target, in order."""
        rows = read_all(TrailName(self.target.home / "dirdat", trail))
        return [int(decode_image(row[3])[0][1] or b"") for row in rows]  # type: ignore[arg-type]

    def _applied(self) -> int:
        found = self.south.execute("SELECT count(*) FROM a.items").fetchone()
        assert found is not None
        return int(found[0])

    def close(self) -> None:
        super().close()
        self.origin.close()
        self.north.close()
        self.south.close()


def _pid(file: Path) -> int:
    """The number of the running process of a process file; 0 if none runs."""
    found = read_process_file(file)
    return found.pid if found is not None and state_of(file)[0] is ProcessState.RUNNING else 0
