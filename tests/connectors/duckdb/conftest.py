"""A DuckDB file to apply changes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from connectors.duckdb.duckdb_deliveries import DuckDBDeliveries


@pytest.fixture
def deliveries(tmp_path: Path) -> Iterator[DuckDBDeliveries]:
    made = DuckDBDeliveries(tmp_path / "t.duckdb")
    yield made
    made.close()
