"""FC: edit lines beneath a statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell.ground import Shell

from ggshell.shell.fix import fixed


@pytest.mark.parametrize(
    ("statement", "marks", "becomes"),
    [
        ("send mgr", "        i childstatus", "send mgr childstatus"),
        ("info mgr", "     rextract ext1", "info extract ext1"),
        ("info extrract ext1", "        d", "info extract ext1"),
        ("info extract ext1", "     dddddddd", "info ext1"),
        ("info all", "stat", "stat all"),
        ("info ext1", "          , detail", "info ext1 , detail"),
        ("status ext1", "       pmp", "status pmp1"),
        ("status ext1", "       D", "status xt1"),
    ],
)
def test_marks(statement: str, marks: str, becomes: str) -> None:
    assert fixed(statement, marks) == becomes


@given(st.text(max_size=30), st.text(max_size=30))
def test_marks_of_any_kind_are_taken(statement: str, marks: str) -> None:
    assert isinstance(fixed(statement, marks), str)


def test_fc_in_a_session(with_groups: Shell) -> None:
    out = with_groups.session("status ext1\nfc\n       pmp\n\nexit\n")
    assert "2> status ext1\nGGSCI" in out
    assert "2..GGSCI" in out
    assert "EXTRACT PMP1: STOPPED" in out


def test_two_slashes_give_it_up_and_nothing_is_repeated(with_groups: Shell) -> None:
    assert with_groups.session("status ext1\nfc 1\n//\nexit\n").count("STOPPED") == 1


def test_fc_without_a_history_and_in_a_batch(shell: Shell) -> None:
    assert "no such statement" in shell.session("fc\nexit\n")
    refused = shell.batch("FC")
    assert (refused.code, "needs a session" in refused.err) == (1, True)
