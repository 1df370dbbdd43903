"""Both engines beside each other: what one answers, the other must."""

from __future__ import annotations

from pathlib import Path

from ggshell.spark.engines import Engines
from ggshell.spark.session import WarmSession
from ggshell.spark.settings import EngineChoice, Settings


def local_engine() -> Engines:
    return Engines(Settings(engine=EngineChoice.LOCAL), Path("never-written.log"))


def spark_engine(warm: WarmSession) -> Engines:
    """Over the session of the whole test run; not to be closed."""
    engines = Engines(Settings(engine=EngineChoice.SPARK), Path("never-written.log"))
    engines.session = warm
    return engines
