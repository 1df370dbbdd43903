"""FC: edit lines below a statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.language.fix import fixed


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
def test_edit_marks_change_the_statement(statement: str, marks: str, becomes: str) -> None:
    assert fixed(statement, marks) == becomes


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_edit_marks_are_accepted(statement: str, marks: str) -> None:
    assert isinstance(fixed(statement, marks), str)
