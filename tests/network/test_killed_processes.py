"""``kill -9`` of any process of two homes under load: every row arrives once over every way. ``--rounds`` makes it longer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from full_chain import MEMBERS, FullChain

pytestmark = pytest.mark.slow


@pytest.fixture
def chain(tmp_path: Path, north: str, south: str) -> Iterator[FullChain]:
    found = FullChain(tmp_path, north, south)
    yield found
    found.close()


def test_every_row_arrives_once_over_every_way_whatever_is_killed(
    chain: FullChain, request: pytest.FixtureRequest
) -> None:
    """Each process is killed once, in a random order; several at a time with ``--rounds``."""
    rounds = int(request.config.getoption("--rounds"))
    chance = random.Random(f"killed {rounds}")
    chain.insert(10)
    chain.until_all_arrived()
    for _ in range(rounds or 1):
        with chain.load() as pause:
            for member in chance.sample(MEMBERS, len(MEMBERS)):
                pause.wait(chance.uniform(0.0, 0.3))
                chain.kill(member)
        chain.until_all_arrived(300)
