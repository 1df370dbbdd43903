"""A step that was interrupted after any of its statements is completed when it is run again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from command_line import run_ggshell
from moving import MoveHome

from ggshell.clock import SystemClock
from ggshell.errors import ProcessError
from ggshell.move import steps
from ggshell.move.draining import Drain
from ggshell.move.request import MoveRequest

pytestmark = pytest.mark.slow


@pytest.fixture
def move(tmp_path: Path, north: str, south: str) -> Iterator[MoveHome]:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigserial PRIMARY KEY)")
    found = MoveHome(tmp_path / "home", north, south)
    yield found
    found.close()


class _Interrupted:
    """Runs scripts up to a statement and stops there, as a crash would; ``last`` is the script of the last call."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.after: int | None = None
        self.last: list[str] = []

    def __call__(self, step: str, script: str) -> bool:
        self.last = script.splitlines()
        path = self._home / f"{step}.oby"
        path.write_text("\n".join(self.last[: self.after]))
        result = run_ggshell("--home", self._home, "--auto-manager", path)
        assert result.returncode == 0, result.stdout + result.stderr
        return self.after is None or self.after >= len(self.last)


def test_every_step_can_be_interrupted_after_each_statement(move: MoveHome, request: pytest.FixtureRequest) -> None:
    """``--rounds`` interrupts after every statement instead of some."""
    obey = _Interrupted(move.home.root)
    clock = SystemClock()
    drain = Drain(move.home, clock, threading.Event().wait, lambda _: None)
    means = steps.Means(move.home, obey, lambda _: None, drain)
    each: tuple[Callable[[], None], ...] = (
        lambda: steps.prepare(means, MoveRequest("north", "south")),
        lambda: steps.load(means),
        lambda: steps.follow(means),
        lambda: steps.finish(means),
    )
    for run in each:
        for number in itertools.count(2, 1 if request.config.getoption("--rounds") else 3):
            obey.after = number
            try:
                run()
                break
            except ProcessError as error:
                assert error.code == "GGS-01252", error
    assert not list((move.home.root / "dirdat").iterdir())
