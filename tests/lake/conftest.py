"""A lake of the form that a test names, and one Spark session for what needs no process of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lakes import Lake

from ggshell.demo.processes import end_processes
from ggshell.spark.session import WarmSession
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    pytest.importorskip("pyspark", reason="pyspark is not installed here")
    made = Lake(tmp_path / "home", request.param)
    yield made
    end_processes(made.home.root)
    shutil.rmtree(made.home.root, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = Settings(master="local[2]", memory="1g", options={"spark.sql.shuffle.partitions": "2"})
    session = WarmSession(settings, tmp_path_factory.mktemp("spark") / "spark.log")
    yield session.get()
    session.close()
