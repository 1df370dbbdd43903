"""The programs in scripts/: each module can be imported, and each fault names a function that exists."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
PACKAGES = ("benches", "faultruns", "walking")
MODULES = [
    f"{package}.{file.stem}"
    for package in PACKAGES
    for file in sorted((SCRIPTS / package).glob("*.py"))
    if file.stem not in ("__init__", "__main__")
]


@pytest.fixture(autouse=True)
def scripts_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
        del sys.modules[name]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_the_scripts_can_be_imported(module: str) -> None:
    assert importlib.import_module(module).__doc__


def test_every_point_at_which_a_process_is_killed_exists() -> None:
    points = importlib.import_module("faultruns.deadly").points
    members = [found for kind in ("postgres", "mariadb") for found in points(kind, kind).values()]
    for point in {point for found in members for point in found.values()}:
        owner = importlib.import_module(point.module)
        for name in point.name.split("."):
            owner = getattr(owner, name)
        assert callable(owner), point
