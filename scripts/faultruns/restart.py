"""The servers of source and target stop, fast or at once as in a crash, and come back; the processes wait and go on."""

from __future__ import annotations

import random

from faultruns.chain import Chain

MARIADB = True


def missing() -> str:
    """The servers are our own."""
    return ""


def prepare(ground: Chain) -> None:
    """Nothing is needed."""


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: one server, or both, stop under load and start again. Raises Failed when a process ends by that."""
    chance = random.Random(f"restart {seed}")
    for _ in range(rounds):
        ground.wait(chance.uniform(0.1, 1.0))
        for name in chance.choice((("north",), ("south",), ("north", "south"))):
            ground.sides[name].stop(chance.choice(("fast", "immediate")))
        ground.wait(chance.uniform(0.0, 0.3))
        ground.start_databases()
    ground.require_alive()
