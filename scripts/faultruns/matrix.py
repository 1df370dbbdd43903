"""The crash matrix: every process dies at every point that matters, passed for a number of times that the seed decides."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from benches.ground import Failed

from faultruns.chain import Chain
from faultruns.deadly import ROLLS, points
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as checkpoints
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.types import TrailPosition

SCRIPTS = Path(__file__).parents[1]
COMMANDS = {
    "Manager": ["manager"],
    "Extract": ["extract", "--group", "EXT1"],
    "pump": ["extract", "--group", "PMP1"],
    "path": ["path", "--group", "DP1"],
    "Replicat": ["replicat", "--group", "REP1"],
}
STOPS = {
    "Extract": "STOP EXTRACT ext1",
    "pump": "STOP EXTRACT pmp1",
    "path": "STOP DISTPATH dp1",
    "Manager": "STOP MGR !",
}
ROLLOVERS = {
    "Extract": "SEND EXTRACT ext1 ROLLOVER",
    "pump": "SEND EXTRACT pmp1 ROLLOVER",
    "path": "SEND DISTPATH dp1 ROLLOVER",
}
PASS_SECONDS = 60.0


MARIADB = True


def missing() -> str:
    """Every machine can kill."""
    return ""


def prepare(ground: Chain) -> None:
    """Manager purges what is read."""
    with (ground.home / "dirprm" / "mgr.prm").open("a") as file:
        file.write("PURGEOLDEXTRACTS ./dirdat/*, USECHECKPOINTS\n")


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: one process at one of its points; so many rounds as there are points take all of them, in an order of the seed.

    Raises Failed when a point is not passed, or a process does not go on.
    """
    chance = random.Random(f"matrix {seed}")
    known = points(ground.how.source, ground.how.target)
    every = [(member, name) for member, found in known.items() for name in found]
    order: list[tuple[str, str]] = []
    for _ in range(rounds):
        if not order:
            order = chance.sample(every, len(every))
        member, name = order.pop()
        strike(ground, member, name, chance.randint(1, known[member][name].often))


def strike(ground: Chain, member: str, name: str, count: int) -> None:
    """One process dies at one point, and is started again."""
    ground.obey(STOPS.get(member, "STOP REPLICAT rep1"))
    if member == "Manager":
        _make_old_files(ground)
    kind, *group = COMMANDS[member]
    command = [sys.executable, "-P", "-m", "faultruns.deadly", member, name, str(count), kind]
    process = subprocess.Popen(
        [*command, "--home", str(ground.home), *group],
        cwd=ground.home,
        env={**os.environ, "PYTHONPATH": f"{SCRIPTS}:{SCRIPTS.parent}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    what = f"{member} dies {name} ({count})"

    def runs() -> bool:
        return ground.state(member) is ProcessState.RUNNING

    try:
        if name in ROLLS or member == "Manager":
            ground.until(f"{member} runs", lambda: runs() or process.poll() is not None, seconds=PASS_SECONDS)
        if name in ROLLS and runs():  # with much to write it may be dead before it is asked
            ground.obey(ROLLOVERS[member], must=False)  # it may die before it has answered
        if member == "Manager":
            with contextlib.suppress(GgsError):  # the same
                request(_socket(ground), "PURGE")
        ground.until(what, lambda: process.poll() is not None, seconds=PASS_SECONDS)
    finally:
        process.kill()
        process.wait()
    if process.returncode != -signal.SIGKILL:
        raise Failed(f"{what}: it ended by itself ({process.returncode})\n{ground.reports()}")
    ground.start("Manager", member)


def _socket(ground: Chain) -> str:
    """Where Manager listens."""
    entry = read_process_file(ground.path("Manager"))
    if entry is None:
        raise Failed("Manager does not run")
    return entry.socket


def _make_old_files(ground: Chain) -> None:
    """Let the pump be done with a file, so that there is something to purge."""
    ground.obey(ROLLOVERS["Extract"])
    names = sorted(path.name for path in (ground.home / "dirdat").glob("ea0*"))
    ground.until(
        "the pump goes on to another file", lambda: _reached(ground) > int(names[-1][2:]), seconds=PASS_SECONDS
    )


def _reached(ground: Chain) -> int:
    """The file that the pump would begin with."""
    place = checkpoints.load(ground.home / "dirchk" / "PMP1.cpe").read.recovery
    return place.seqno if isinstance(place, TrailPosition) else 0
