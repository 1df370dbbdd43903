"""REPERROR and related parameters in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError
from ggshell.parameters.loading import load_refusal_rules, load_replicat
from ggshell.parameters.reperror import RefusalRules, ReperrorRule
from ggshell.pipeline.apply.error_rules import Switches


def load(folder: Path, *lines: str) -> RefusalRules:
    path = folder / "rep1.prm"
    path.write_text("\n".join(["REPLICAT rep1", *lines, "MAP a.*, TARGET b.*;", ""]))
    return load_refusal_rules(path)


def test_rules_and_switches_are_read_in_order(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "REPERROR (DEFAULT, ABEND)",
        "reperror ( -1403 , discard )",
        "REPERROR (23505, RETRYOP MAXRETRIES 3)",
        "HANDLECOLLISIONS",
        "OVERRIDEDUPS",
        "NOOVERRIDEDUPS",
    )
    assert found == RefusalRules(
        (ReperrorRule("DEFAULT", "ABEND"), ReperrorRule("-1403", "DISCARD"), ReperrorRule("23505", "RETRYOP", 3)),
        Switches(collisions=True),
    )


def test_a_rule_applies_to_the_map_statements_below_it(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    lines = [
        "MAP a.first, TARGET b.first;",
        "REPERROR (DEFAULT, DISCARD)",
        "MAP a.second, TARGET b.second, REPERROR (1403, IGNORE);",
        "REPERROR RESET",
        "REPERROR (23505, IGNORE)",
        "REPERROR (DEFAULT2, DISCARD)",
        "MAP a.third, TARGET b.third;",
        "MAP a.fourth, TARGET b.fourth, REPERROR (DEFAULT, EXCEPTION);",
    ]
    path.write_text("\n".join(["REPLICAT rep1", *lines, ""]))
    abend, discard = ReperrorRule("DEFAULT", "ABEND"), ReperrorRule("DEFAULT", "DISCARD")
    others = (ReperrorRule("DEFAULT2", "ABEND"), discard, ReperrorRule("1403", "IGNORE"))
    fourth = (ReperrorRule("DEFAULT2", "DISCARD"), ReperrorRule("DEFAULT", "EXCEPTION"))
    assert [each.refusals for each in load_replicat(path).maps] == [
        (abend, ReperrorRule("DEFAULT2", "ABEND")),
        others,
        (),
        fourth,
    ]


def test_a_switch_applies_to_the_map_statements_below_it(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    lines = [
        "MAP a.first, TARGET b.first;",
        "HANDLECOLLISIONS",
        "MAP a.second, TARGET b.second;",
        "MAP a.third, TARGET b.third, NOHANDLECOLLISIONS;",
        "NOHANDLECOLLISIONS",
        "OVERRIDEDUPS",
        "INSERTMISSINGUPDATES",
        "MAP a.fourth, TARGET b.fourth;",
        "NOOVERRIDEDUPS",
        "NOINSERTMISSINGUPDATES",
        "MAP a.fifth, TARGET b.fifth, HANDLECOLLISIONS;",
    ]
    path.write_text("\n".join(["REPLICAT rep1", *lines, ""]))
    off, on = Switches(), Switches(collisions=True)
    others = Switches(override_duplicates=True, insert_missing=True)
    assert [each.switches for each in load_replicat(path).maps] == [off, on, off, others, on]
    assert load_refusal_rules(path).switches == off


def test_reset_removes_the_rules_above_it(tmp_path: Path) -> None:
    assert load(tmp_path, "REPERROR (DEFAULT, DISCARD)", "REPERROR RESET").rules == ()


@pytest.mark.parametrize(
    ("body", "retries", "delay"),
    [
        ("(60, TRANSABORT)", None, 60.0),
        ("(60, TRANSABORT, MAXRETRIES 3, DELAYSECS 10)", 3, 10.0),
        ("(60, transabort maxretries 3 delaycsecs 25)", 3, 0.25),
        ("(60, TRANSABORT, DELAYCSECS 150)", None, 1.5),
    ],
)
def test_transabort_sets_the_number_and_delay_of_retries(
    tmp_path: Path, body: str, retries: int | None, delay: float
) -> None:
    assert load(tmp_path, f"REPERROR {body}").rules == (ReperrorRule("60", "TRANSABORT", retries, delay),)


@pytest.mark.parametrize(
    "body",
    [
        "(1403)",
        "(1403, NOTHING)",
        "(1403, DISCARD, MAXRETRIES 3)",
        "(1403, RETRYOP, DELAYSECS 3)",
        "(60, TRANSABORT, DELAYSECS 3, DELAYCSECS 3)",
        "(60, TRANSABORT, MAXRETRIES)",
        "(60, TRANSABORT, MAXRETRIES 1, MAXRETRIES 2)",
    ],
)
def test_an_invalid_rule_is_refused_with_its_line(tmp_path: Path, body: str) -> None:
    with pytest.raises(ParameterError) as caught:
        load(tmp_path, f"REPERROR {body}")
    assert caught.value.where.startswith(f"{tmp_path / 'rep1.prm'}:2")


def test_a_map_has_its_own_rules(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    maps = "MAP a.t, TARGET b.t, REPERROR (1403, DISCARD), REPERROR (DEFAULT, TRANSABORT, DELAYSECS 2);\nMAP a.*, TARGET b.*;"
    path.write_text(f"REPLICAT rep1\nUSERIDALIAS south\nREPERROR (DEFAULT, IGNORE)\n{maps}\n")
    first, second = load_replicat(path).maps
    assert first.refusals == (ReperrorRule("1403", "DISCARD"), ReperrorRule("DEFAULT", "TRANSABORT", None, 2.0))
    assert second.refusals == ()
    assert load_refusal_rules(path).rules == (ReperrorRule("DEFAULT", "IGNORE"),)


def test_an_invalid_rule_within_a_map_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    path.write_text("REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, REPERROR (1403, NOTHING);\n")
    with pytest.raises(ParameterError) as caught:
        load_replicat(path)
    assert caught.value.where.startswith(f"{path}:3")
