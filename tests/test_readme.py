"""What README and the scripts tell people to type is understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ggshell.syntax.grammar import parse
from ggshell.syntax.statement import split

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
GIVEN = [
    *(item.text for text in re.findall(r'-c "([^"]+)"', README) for item in split(text)),
    *(item.text for item in split((ROOT / "scripts" / "quickstart.oby").read_text())),
]


@pytest.mark.parametrize("statement", GIVEN)
def test_statements_that_are_shown_are_understood(statement: str) -> None:
    assert parse(statement).key


def test_files_that_readme_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_come_first() -> None:
    assert README.index("git clone") < README.index("scripts/quickstart") < README.index("## ")
