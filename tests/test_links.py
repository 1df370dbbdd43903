"""Links between the pages are valid: every linked file exists and has the linked heading."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def _without_code(text: str) -> str:
    """The page without fenced blocks and code spans."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that a code host derives from the headings of a page: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    wrong = []
    for link in _LINK.findall(_without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists() and target.is_relative_to(ROOT)
        if not is_there or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_every_document_is_linked_from_the_first_page() -> None:
    links = set(_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    documents = {page.relative_to(ROOT).as_posix() for page in PAGES} - {"README.md"}
    assert documents - {link.partition("#")[0] for link in links} == set()


def test_the_tests_that_compare_pairs_of_decoders_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+)` in \[([^\]]+)\]", text)
    assert len(named) > 10
    assert [name for name, path in named if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")] == []
