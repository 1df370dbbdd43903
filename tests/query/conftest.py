"""The log of the test run's Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.query.session import WarmSession


@pytest.fixture(scope="session")
def spark_log(warm: WarmSession) -> Path:
    """The file that Java writes its log to, once it has started."""
    warm.get()
    return Path(warm.facts().log)
