"""Homes over real databases, ended with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.heartbeat.deployment import Deployment


@pytest.fixture
def deployment(tmp_path: Path, north: str, south: str) -> Iterator[Deployment]:
    """North and south with heartbeat tables; heartbeats are sent only by the test."""
    made = Deployment(tmp_path / "home", north=north, south=south)
    made.heartbeat_tables()
    yield made
    made.close()
