"""``scripts/walks``: run the walks that CONTRIBUTING.md describes and report which files each of them passes through."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.ground import Failed, Ground, ground, wait_until
from tabulate import tabulate

from walking.trace import Walk, pieces_of

GOALS = {
    "row, Extract": (12, 0),
    "row, Replicat": (12, 0),
    "statement, ADD EXTRACT": (20, 0),
    "checkpoint, Bounded Recovery": (8, 0),
    "query, LAG REPORT": (25, 60),
}
"""The maximum number of files that a walk may pass through, and of modules that it may load (0: not limited)."""


@contextmanager
def _traced(place: Path, kind: str, *arguments: str) -> Iterator[Callable[[], tuple[list[list[str]], int]]]:
    """Run a command with a tracer while the block runs; the function that it yields returns the result."""
    with tempfile.TemporaryDirectory(prefix="ggshell-walk-") as folder:
        result = Path(folder, "pieces.json")
        command = [sys.executable, "-m", "walking.traced", str(result), kind, *arguments]
        scripts = str(Path(__file__).parents[1])
        process = subprocess.Popen(
            command, cwd=place, env={**os.environ, "PYTHONPATH": scripts}, stdout=subprocess.DEVNULL
        )

        def done() -> tuple[list[list[str]], int]:
            if process.wait(120):
                raise Failed(f"{' '.join(arguments)} ended with {process.returncode}")
            return pieces_of(result)

        try:
            yield done
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _group(place: Ground, mode: str, kind: str, group: str, work: Callable[[], object]) -> tuple[list[list[str]], int]:
    """Trace a process of a group from its start to its stop, while it does some work."""
    with _traced(place.home, mode, kind, "--home", str(place.home), "--group", group.upper()) as done:
        wait_until(f"{group} runs", lambda: "RUNNING" in place.obey(f"INFO {kind} {group}"))
        work()
        place.obey(f"STOP {kind} {group}")
        return done()


def _statement(place: Ground, *statements: str) -> Walk:
    """Trace the last of several statements."""
    with _traced(place.home, "shell", "--home", str(place.home), "-c", "\n".join(statements)) as done:
        pieces, modules = done()
    return Walk(tuple(pieces[-1]), modules)


def _turn(pieces: list[list[str]], passed: str) -> Walk:
    """Return the shortest piece that passes a file: a single row, without the periodic work of a process.

    ``passed``: a file that only a row enters. A turn without rows also enters the loops, and asks for the state of writer and
    delivery.
    """
    found = [tuple(piece) for piece in pieces if passed in piece]
    return Walk(min(found, key=lambda piece: len(set(piece))))


def _rows(place: Ground) -> Iterator[tuple[str, Walk]]:
    place.extract("ext", "./dirdat/ea")
    place.checkpoint_table()
    place.replicat("rep", "./dirdat/ea")

    def captured() -> None:
        for number in range(1, 6):
            place.fill(1, 1, first=number)
            place.wait_for_slot("ggs_ext", place.end_of_log())

    yield "row, Extract", _turn(_group(place, "process", "extract", "ext", captured)[0], "trail/encode.py")

    def applied() -> None:
        place.wait_for_count("bench.rows", 5)
        place.obey("START EXTRACT ext")
        for number in range(6, 11):
            place.fill(1, 1, first=number)
            place.wait_for_count("bench.rows", number)

    found = _group(place, "process", "replicat", "rep", applied)[0]
    place.obey("STOP EXTRACT ext")
    yield "row, Replicat", _turn(found, "connectors/postgres/apply_steps.py")


def _statements(place: Ground) -> Iterator[tuple[str, Walk]]:
    login = "DBLOGIN USERIDALIAS north"
    yield "statement, ADD EXTRACT", _statement(place, login, "ADD EXTRACT walk, TRANLOG, BEGIN NOW")


def _queries(place: Ground) -> Iterator[tuple[str, Walk]]:
    (place.home / "GLOBALS").write_text("GGSCHEMA ggadmin\n")
    for name in ("north", "south"):
        place.obey(f"DBLOGIN USERIDALIAS {name}", "ADD HEARTBEATTABLE, FREQUENCY 1")
    place.extract("lag1", "./dirdat/la")
    place.obey("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE ggadmin.ggs_checkpoint")
    place.replicat("lag2", "./dirdat/la")
    place.obey("START EXTRACT lag1", "START REPLICAT lag2")
    with place.connect("south") as connection:
        query = "SELECT 1 FROM ggadmin.gg_heartbeat_history"
        wait_until("a heartbeat arrives", lambda: connection.execute(query).fetchone())
    yield "query, LAG REPORT", _statement(place, "LAG REPORT FROM south")


def _recovery(place: Ground) -> Iterator[tuple[str, Walk]]:
    command = [
        sys.executable,
        "-m",
        "ggshell.demo.redo_cli",
        "--home",
        str(place.home),
        "figure",
        str(place.home / "log"),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    place.obey(*(line for line in said.splitlines() if not line.startswith("START EXTRACT")))
    pieces, _ = _group(
        place, "recovery", "extract", "br1", lambda: place.obey("SEND EXTRACT br1, BR BRCHECKPOINT IMMEDIATE")
    )
    yield "checkpoint, Bounded Recovery", Walk(max(map(tuple, pieces), key=len))


WALKS = {"row": _rows, "statement": _statements, "query": _queries, "checkpoint": _recovery}


def measure(names: list[str]) -> Iterator[tuple[str, Walk]]:
    """Run the walks of some kinds, or all of them."""
    for name, walk in WALKS.items():
        if not names or name in names:
            with ground() as place:
                yield from walk(place)


def main() -> int:
    parser = argparse.ArgumentParser(prog="walks", description=__doc__)
    parser.add_argument("names", nargs="*", help="row, statement, query, checkpoint (default: all)")
    parser.add_argument("--files", action="store_true", help="list the files of each walk in order")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = dict(measure(given.names))
    if given.json:
        print(
            json.dumps(
                {
                    name: {"files": walk.files, "hops": walk.hops, "modules": walk.modules}
                    for name, walk in found.items()
                }
            )
        )
        return 0
    rows = []
    for name, walk in found.items():
        most, modules = GOALS[name]
        rows.append((name, len(walk.files), most, walk.hops, walk.modules or "", modules or ""))
    print(tabulate(rows, headers=("walk", "files", "goal", "hops", "modules", "goal")))
    for name, walk in found.items() if given.files else ():
        print(f"\n{name}", *walk.files, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
