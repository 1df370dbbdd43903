"""A lake of the form that a test names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lakes import Lake

from ggshell.demo.processes import end_processes


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path / "home", request.param)
    yield made
    end_processes(made.home.root)
    shutil.rmtree(made.home.root, ignore_errors=True)
