"""``startup``: common statements, each with ``-c`` in a new process, compared with ``litecli bench.db -e "select 1"``.

In a round, each statement and the peer run several times; the fastest run counts, because a start waits for nothing.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed, ggshell

GOAL = 3.0
STARTS = 3
"""Of a statement in a round."""
STATEMENTS = (
    "INFO ALL",
    "INFO MANAGER",
    "INFO EXTRACT *",
    "INFO EXTRACT ext, DETAIL",
    "INFO REPLICAT *, DETAIL",
    "INFO EXTTRAIL ./dirdat/ex",
    "INFO CREDENTIALSTORE",
    "INFO MASTERKEY",
    "STATUS EXTRACT *",
    "STATUS ER *",
    "LAG EXTRACT *",
    "STATS EXTRACT *",
    "VIEW PARAMS ext",
    "VIEW GGSEVT",
    "HELP ADD EXTRACT",
    "SHOW",
    "ALTER EXTRACT ext, EXTSEQNO 0, EXTRBA 0",
    "ADD EXTRACT new, EXTTRAILSOURCE ./dirdat/ea",
    "ADD EXTTRAIL ./dirdat/na, EXTRACT ext, MEGABYTES 100",
    "DELETE EXTRACT spare",
)
_UNDONE = {
    "ADD EXTRACT new, EXTTRAILSOURCE ./dirdat/ea": "DELETE EXTRACT new",
    "ADD EXTTRAIL ./dirdat/na, EXTRACT ext, MEGABYTES 100": "DELETE EXTTRAIL ./dirdat/na",
    "DELETE EXTRACT spare": "ADD EXTRACT spare, EXTTRAILSOURCE ./dirdat/ea",
}
"""What undoes a statement, so that it can run again."""
_PREPARED = (
    "ADD EXTRACT ext, EXTTRAILSOURCE ./dirdat/ea",
    "ADD EXTRACT spare, EXTTRAILSOURCE ./dirdat/ea",
    "ADD EXTTRAIL ./dirdat/ex, EXTRACT ext",
    "ADD REPLICAT rep, EXTTRAIL ./dirdat/ex, NODBCHECKPOINT",
    "ADD CREDENTIALSTORE",
    "CREATE WALLET",
    "ADD MASTERKEY",
)


def run(rounds: int, quick: bool) -> list[Figure]:
    litecli = Path(sys.executable).with_name("litecli")
    if not litecli.exists():
        raise Failed("litecli, the peer, is not installed in this environment: pip install '.[bench]'")
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as folder:
        place = Starts(Path(folder), str(litecli))
        place.prepare()
        *ours, peer = alternate(rounds, *place.sides(1 if quick else STARTS))
    return [
        less_is_better("startup", f"`{statement}`", "ms", times, peer, "litecli, select 1", GOAL)
        for statement, times in zip(STATEMENTS, ours, strict=True)
    ]


class Starts:
    """A home with groups that do not run, and a folder for the peer."""

    def __init__(self, folder: Path, litecli: str) -> None:
        self._folder = folder
        self._litecli = litecli
        self._environment = {**os.environ, "HOME": str(folder)}
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            self._environment.pop(name, None)

    def prepare(self) -> None:
        """Create the groups and run everything once, so that nothing is compiled or configured later."""
        home = self._folder / "home"
        (home / "dirprm").mkdir(parents=True)
        (home / "dirprm" / "ext.prm").write_text("EXTRACT ext\nEXTTRAIL ./dirdat/ex\nTABLE shop.*;\n")
        for statement in (*_PREPARED, *STATEMENTS):
            self._once(statement)
        self._peer()

    def sides(self, starts: int) -> list[Callable[[int], float]]:
        """A function for each statement, and one for the peer; each returns the milliseconds of its fastest start."""

        def fastest(run: Callable[[], float]) -> Callable[[int], float]:
            return lambda _: min(run() for _ in range(starts))

        return [*(fastest(functools.partial(self._once, each)) for each in STATEMENTS), fastest(self._peer)]

    def _once(self, statement: str) -> float:
        """Run a statement, and undo it. The milliseconds of the statement."""
        words = [ggshell(), "--home", str(self._folder / "home"), "-c"]
        taken = self._milliseconds([*words, statement])
        if statement in _UNDONE:
            self._milliseconds([*words, _UNDONE[statement]])
        return taken

    def _peer(self) -> float:
        return self._milliseconds([self._litecli, str(self._folder / "bench.db"), "-e", "select 1"])

    def _milliseconds(self, words: list[str]) -> float:
        began = time.perf_counter()
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, cwd=self._folder, env=self._environment
        )
        taken = time.perf_counter() - began
        if done.returncode:
            raise Failed(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return 1000 * taken
