"""The files of the quickstart are valid: the language accepts every statement and every parameter file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.language import grammar, statement
from ggshell.parameters.loading import load_extract, load_manager, load_replicat

SCRIPTS = Path(__file__).parents[2] / "scripts"
PARAMETERS = SCRIPTS / "quickstart.d"


def test_every_statement_of_the_script_is_in_the_grammar() -> None:
    text = (SCRIPTS / "quickstart.oby").read_text()
    keys = [grammar.parse(part.text).key for part in statement.split(text)]
    assert {
        "ADD EXTRACT",
        "ADD DISTPATH",
        "ADD REPLICAT",
        "INFO ALL",
        "REGISTER EXTRACT",
        "ADD CHECKPOINTTABLE",
    } <= set(keys)


@pytest.mark.parametrize("name", ["ext1", "pmp1"])
def test_extract_parameters_are_accepted(name: str) -> None:
    assert load_extract(PARAMETERS / f"{name}.prm").tables


@pytest.mark.parametrize("name", ["rep1", "rep2"])
def test_replicat_parameters_are_accepted(name: str) -> None:
    assert load_replicat(PARAMETERS / f"{name}.prm").maps


def test_manager_parameters_are_accepted() -> None:
    assert load_manager(PARAMETERS / "mgr.prm").port == 7809


def test_the_two_queries_read_the_trail_and_the_heartbeats() -> None:
    text = (SCRIPTS / "queries.oby").read_text()
    assert [grammar.parse(part.text).key for part in statement.split(text)] == ["TRAIL COUNT", "LAG REPORT"]
