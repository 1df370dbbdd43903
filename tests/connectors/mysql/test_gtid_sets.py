"""GTID sets of MySQL."""

from __future__ import annotations

import pytest

from ggshell.connectors.mysql.gtid_sets import parse_set, set_of
from ggshell.errors import UsageError

ONE, TWO = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "0b4f101a-eb6f-11f1-8ee2-02fc00000001"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", (), (f"{ONE}:1",)),
        (f"{ONE}:1-5:7", (f"{ONE}:1", f"{ONE}:5", f"{ONE}:7"), (f"{ONE}:6", f"{ONE}:8", f"{TWO}:1", f"{ONE}:tag:1")),
        (f"{TWO}:2-3:tag:1:4-9,{ONE}:7", (f"{TWO}:tag:4", f"{TWO}:3", f"{ONE}:7"), (f"{TWO}:4", f"{TWO}:tag:2")),
    ],
)
def test_a_set_contains_its_transactions_and_no_others(
    text: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    found = parse_set(text)
    assert [gtid for gtid in (*inside, *outside, "") if gtid in found] == [*inside]
    assert parse_set(str(found)) == found


def test_a_set_of_transactions_has_intervals() -> None:
    gtids = [f"{ONE}:3", "", f"{ONE}:1", f"{ONE}:2", f"{ONE}:2", f"{TWO}:tag:9", f"{ONE}:7"]
    assert set_of(gtids) == parse_set(f"{ONE}:1-3:7,{TWO}:tag:9")


def test_blanks_line_breaks_and_capitals_do_not_matter() -> None:
    assert parse_set(f"{ONE.upper()}:1-5,\n {TWO}: 3") == parse_set(f"{ONE}:1-5,{TWO}:3")


@pytest.mark.parametrize("text", ["0-1-100", ONE, f"{ONE}:0", f"{ONE}:1-", f"{ONE}:no-tag", "x:1"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid GTID set"):
        parse_set(text)
