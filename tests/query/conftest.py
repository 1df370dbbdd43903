"""What the log of the run's one Spark session says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.query.session import WarmSession


@pytest.fixture(scope="session")
def spark_log(warm: WarmSession) -> Path:
    """What Java writes to, once it has started."""
    warm.get()
    return Path(warm.facts().log)
