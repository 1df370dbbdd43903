"""The reasons of what is not supported: true for every kind of database."""

from __future__ import annotations

import re

import pytest
from source_trees import ROOT

from ggshell.language.values import _csn

_REASON = re.compile(r"^(?:- Not supported|    [A-Z][A-Z_ ]*): (.+)$", re.MULTILINE)


def test_a_reason_that_names_postgresql_also_says_what_holds_for_mariadb() -> None:
    """Regression: a user of MariaDB was told what does not apply to PostgreSQL."""
    wrong = [
        f"{page.relative_to(ROOT)}: {reason}"
        for page in sorted((ROOT / "grammar").rglob("*.md"))
        if page.parent.name in ("commands", "parameters")
        for reason in _REASON.findall(page.read_text(encoding="utf-8"))
        if "PostgreSQL" in reason and "MariaDB" not in reason
    ]
    assert wrong == []


def test_the_hint_of_a_csn_has_the_form_of_each_database() -> None:
    with pytest.raises(ValueError, match="is not a valid CSN") as caught:
        _csn("x")
    forms = re.findall(r"\d+[/:][0-9A-F]+", str(caught.value))
    assert [_csn(form) for form in forms] == forms
    assert len(forms) == 2
