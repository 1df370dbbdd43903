"""The files of the quickstart are valid: the language accepts every statement and every parameter file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.language import grammar, statement
from ggshell.parameters.loading import load_extract, load_manager, load_replicat, load_service

SCRIPTS = Path(__file__).parents[2] / "scripts"
SOURCE, TARGET = (SCRIPTS / "quickstart.d" / name for name in ("source", "target"))


def test_every_statement_of_the_scripts_is_in_the_grammar() -> None:
    scripts = [(home / "setup.oby").read_text() for home in (SOURCE, TARGET)]
    keys = [grammar.parse(part.text).key for text in scripts for part in statement.split(text)]
    assert {
        "ADD EXTRACT",
        "ADD DISTPATH",
        "ADD REPLICAT",
        "INFO ALL",
        "REGISTER EXTRACT",
        "ADD CHECKPOINTTABLE",
        "START SERVICE",
    } <= set(keys)


@pytest.mark.parametrize("name", ["ext1", "pmp1"])
def test_extract_parameters_are_accepted(name: str) -> None:
    assert load_extract(SOURCE / "dirprm" / f"{name}.prm").tables


@pytest.mark.parametrize("name", ["rep1", "rep2"])
def test_replicat_parameters_are_accepted(name: str) -> None:
    assert load_replicat(TARGET / "dirprm" / f"{name}.prm").maps


def test_the_source_sends_to_the_port_of_the_targets_service() -> None:
    port = load_service(TARGET / "dirprm" / "service.prm").port
    assert load_manager(SOURCE / "dirprm" / "mgr.prm").port != port
    assert f"MGRPORT {port}\n" in (SOURCE / "dirprm" / "pmp1.prm").read_text()
    assert f"wss://127.0.0.1:{port}/services/v2/targets" in (SOURCE / "setup.oby").read_text()


def test_the_two_queries_read_the_trail_and_the_heartbeats() -> None:
    text = (SCRIPTS / "queries.oby").read_text()
    assert [grammar.parse(part.text).key for part in statement.split(text)] == ["TRAIL COUNT", "LAG REPORT"]
