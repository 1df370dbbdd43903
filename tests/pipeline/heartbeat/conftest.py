"""Homes over real databases, ended with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.heartbeat.chains import Chain


@pytest.fixture
def chain(tmp_path: Path, north: str, south: str) -> Iterator[Chain]:
    """North and south with heartbeat tables that beat only when told to."""
    made = Chain(tmp_path / "home", north=north, south=south)
    made.heartbeat_tables()
    yield made
    made.close()
