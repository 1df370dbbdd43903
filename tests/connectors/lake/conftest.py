"""A lake of the form that a test names, and the Spark session for tests that need no process of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lakes import Lake

from ggshell.demo.processes import end_processes
from ggshell.query.session import WarmSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, java: None) -> Iterator[Lake]:
    pytest.importorskip("pyspark", reason="pyspark is not installed here")
    made = Lake(tmp_path / "home", request.param)
    yield made
    end_processes(made.home.root)
    shutil.rmtree(made.home.root, ignore_errors=True)


@pytest.fixture
def spark(warm: WarmSession) -> Iterator[SparkSession]:
    """The Spark session of the run, with as many partitions as a few rows need."""
    session, name = warm.get(), "spark.sql.shuffle.partitions"
    before = session.conf.get(name)
    session.conf.set(name, "2")
    yield session
    session.conf.set(name, before)
