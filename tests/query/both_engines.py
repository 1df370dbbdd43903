"""Both query engines, so that tests can compare their results."""

from __future__ import annotations

from pathlib import Path

from ggshell.query.engines import Engines
from ggshell.query.session import WarmSession
from ggshell.query.settings import EngineChoice, QuerySettings


def local_engine() -> Engines:
    return Engines(QuerySettings(engine=EngineChoice.LOCAL), Path("never-written.log"))


def spark_engine(warm: WarmSession) -> Engines:
    """Runs on the Spark session of the whole test run; do not close it."""
    return Engines(QuerySettings(engine=EngineChoice.SPARK), Path("never-written.log"), session=warm)
