"""A lake of the form that a test names. After each test, all readers must find the same rows in its tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lakes import Lake
from readers import readers_agree_on_all_tables

from ggshell.demo.processes import end_processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    made = Lake(tmp_path / "home", request.param)
    yield made
    end_processes(made.home.root)
    if made.is_whole:
        readers_agree_on_all_tables(made.target, spark)
    shutil.rmtree(made.home.root, ignore_errors=True)
