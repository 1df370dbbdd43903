"""The obey files and parameter files of a move are valid, whatever the names of the schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.check.cli import check_sources
from ggshell.connectors.move_side import Direction
from ggshell.home.home import Home
from ggshell.move.request import MoveRequest
from ggshell.move.scripts import Scripts, extract_parameters, manager_parameters, pair_of, replicat_parameters
from ggshell.types import Csn, TableName

SCHEMAS = ("shop", "Mixed Case", "öde", "select")


@pytest.mark.parametrize("direction", list(Direction))
def test_parameter_files_are_valid(direction: Direction) -> None:
    pair = pair_of(MoveRequest("north", "south", SCHEMAS), direction)
    later = {TableName("shop", "orders"): Csn(5000), TableName("Mixed Case", "T"): Csn(6000)}
    report = check_sources(
        [
            ("extract.prm", extract_parameters(pair, SCHEMAS)),
            ("replicat.prm", replicat_parameters(pair, SCHEMAS, later)),
        ]
    )
    assert report.findings == []


def test_the_parameter_file_of_manager_is_valid() -> None:
    assert check_sources([("mgr.prm", manager_parameters(MoveRequest("north", "south")))]).findings == []


def test_obey_files_are_valid(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    scripts = Scripts(home, MoveRequest("north", "south", SCHEMAS))
    texts = (scripts.prepare(), scripts.load(), scripts.follow(Csn(1)), scripts.verify(SCHEMAS), scripts.finish())
    for text in texts:
        assert text
        report = check_sources([("step.oby", text)], "obey")
        assert not report.failed(strict=False), text


def test_nothing_is_verified_without_tables(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    assert Scripts(home, MoveRequest("north", "south", ("shop",))).verify([]) == ""
