"""One Spark session for the whole run (a cold start costs seconds), and trails of known content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ggshell.errors import StateError
from ggshell.spark.java import find_java
from ggshell.spark.session import WarmSession
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmSession]:
    """The session as the shell holds it: local, two cores."""
    try:
        find_java()
    except StateError as error:
        pytest.skip(str(error))
    session = WarmSession(
        Settings(master="local[2]", memory="1g"), tmp_path_factory.mktemp("spark") / "dirrpt" / "spark.log"
    )
    yield session
    session.close()


@pytest.fixture(scope="session")
def spark(warm: WarmSession) -> SparkSession:
    """The same as PySpark knows it; ``ggtrail`` is registered."""
    return warm.get()


@pytest.fixture(scope="session")
def spark_log(warm: WarmSession) -> Path:
    """What Java writes to, once it has started."""
    warm.get()
    return Path(warm.facts().log)
