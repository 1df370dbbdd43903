"""Two homes with a path between them, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from two_homes import Line, TwoHomes


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[TwoHomes]:
    found = TwoHomes(tmp_path)
    yield found
    found.close()


@pytest.fixture
def line(homes: TwoHomes) -> Iterator[Line]:
    """A proxy in front of the target's service: another port of the same home."""
    found = Line(homes.target.port)
    yield found
    found.close()
