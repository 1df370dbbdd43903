"""``recovery``: a day of redo with one transaction open since its begin, and a crash near the end.

The same home, as the crash left it, is started twice: with Bounded Recovery, and without (BROFF), which reads the log from the
begin of that transaction. What is timed is the recovery: from its begin, restoring included, until reading is back where it
had been. The second figure is what checkpoints cost while the day was captured: their part of Extract's time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed, ggshell, wait_until
from ggshell.clock import SystemClock
from ggshell.demo.processes import end_processes
from ggshell.demo.redo_writer import RedoWriter
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import state_of

DAY = 86_400
GOAL = 10.0
"""Normal to bounded."""
MOST_COST = 3.0
_PARAMETERS = """EXTRACT ext1
SOURCEDB redo://{folder}
EXTTRAIL ./dirdat/ea
CACHEMGR CACHESIZE 256MB
BR {bounded}
TABLE bench.rows, KEYCOLS (id);
"""
_INTERVAL = "BRINTERVAL 1H"


class Day:
    """A home with an Extract, and a day of redo for it."""

    def __init__(self, root: Path, per_second: float) -> None:
        self.root = root
        self.folder = root / "redo"
        self.rows = _write(self.folder, per_second)

    def obey(self, home: Path, *statements: str) -> None:
        command = [ggshell(), "--home", str(home), "--auto-manager", "-c", "\n".join(statements)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if result.returncode != 0:
            raise Failed(f"ggshell refused {statements}:\n{result.stdout}{result.stderr}")

    def parameters(self, home: Path, bounded: str) -> None:
        (home / "dirprm").mkdir(parents=True, exist_ok=True)
        text = _PARAMETERS.format(folder=self.folder, bounded=bounded)
        (home / "dirprm" / "ext1.prm").write_text(text)

    def capture(self) -> tuple[Path, float]:
        """Capture the day, crash; a copy of the home as it is then, and the checkpoints' part of the time in percent."""
        home = self.root / "crashed"
        self.parameters(home, _INTERVAL)
        self.obey(
            home,
            f"DBLOGIN SOURCEDB redo://{self.folder}",
            "ADD EXTRACT ext1, TRANLOG, SCN 1",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 500",
            "START ext1",
        )
        began = SystemClock().steady()
        wait_until("the day is captured", lambda: _ask(home, "GETLAG").get("at_eof"), seconds=900, every=0.02)
        took = SystemClock().steady() - began
        counts = _ask(home, "BR", action="BRSTATS")["counts"]
        wait_until("its end is saved", lambda: checkpoints.load(_checkpoint(home)).caught_up > 0)
        _crash(home)
        kept = home.rename(self.root / "kept")
        return kept, 100 * counts["microseconds"] / 1e6 / took

    def recover(self, kept: Path, bounded: str) -> float:
        """Put the crashed home back and start it; the seconds of its recovery."""
        home = self.root / "crashed"
        shutil.copytree(kept, home, ignore=shutil.ignore_patterns("*.sock"))
        try:
            self.parameters(home, bounded)
            self.obey(home, "START ext1")
            done = wait_until("it recovers", lambda: _complete(home), seconds=900, every=0.02)
            if done["bounded"] is not (bounded != "BROFF"):
                raise Failed(f"not the recovery that was asked for: {done}")
            return float(done["seconds"])
        finally:
            end_processes(home)
            shutil.rmtree(home)


def run(rounds: int, quick: bool) -> list[Figure]:
    root = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    try:
        day = Day(root, 0.5 if quick else 4.0)
        kept, cost = day.capture()
        bounded, normal = alternate(
            rounds,
            lambda _: day.recover(kept, _INTERVAL),
            lambda _: day.recover(kept, "BROFF"),
        )
        return [
            less_is_better("recovery", "a day, one open", "s", bounded, normal, "normal recovery (BROFF)", GOAL),
            less_is_better(
                "recovery", "checkpoints' cost", "%", [cost], [MOST_COST], "of Extract's time, at most", 1.0
            ),
        ]
    finally:
        end_processes(root / "crashed")
        shutil.rmtree(root)


def _write(folder: Path, per_second: float) -> int:
    """A day of redo: one transaction stays open from its begin on; each of the others has four rows."""
    writer = RedoWriter(folder, owner="BENCH")
    old = writer.begin()
    number = 0
    for second in range(int(DAY * per_second)):
        writer.time = 1_767_225_600_000_000 + int(second / per_second * 1e6)
        xid = writer.begin()
        for _ in range(4):
            number += 1
            writer.insert(xid, "ROWS", {"ID": str(number), "CUSTOMER": str(number % 1000), "NOTE": "x" * 64})
        writer.commit(xid)
        if second % int(3600 * per_second) == 0:
            number += 1
            writer.insert(old, "ROWS", {"ID": str(number), "CUSTOMER": "0", "NOTE": "of the open one"})
    writer.close()
    return writer.rows


def _checkpoint(home: Path) -> Path:
    return Home(home).checkpoint("EXT1", GroupKind.EXTRACT)


def _ask(home: Path, verb: str, **arguments: Any) -> dict[str, Any]:
    process = state_of(Home(home).process("EXT1", GroupKind.EXTRACT))[1]
    if process is None or not process.socket:
        raise Failed(f"EXT1 does not run: {Home(home).report('EXT1').read_text()[-2000:]}")
    return request(process.socket, verb, timeout=60, **arguments)


def _complete(home: Path) -> dict[str, Any] | None:
    found = _ask(home, "STATUS").get("recovering")
    return found if found and found["complete"] else None


def _crash(home: Path) -> None:
    process = state_of(Home(home).process("EXT1", GroupKind.EXTRACT))[1]
    if process is None:
        raise Failed("EXT1 does not run")
    os.kill(process.pid, signal.SIGKILL)
    end_processes(home)
