"""A DuckDB file to apply to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from connectors.duckdb.ducks import Ducks


@pytest.fixture
def ducks(tmp_path: Path) -> Iterator[Ducks]:
    made = Ducks(tmp_path / "t.duckdb")
    yield made
    made.close()
