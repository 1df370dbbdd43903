"""Pieces of HELP: styles that a terminal colors, and plain text without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.language import pages
from ggshell.language.help import KINDS, Fragment, find, fragments, notation, plain

ALL = [path for kind in KINDS for path in pages.index(kind).values()]


def test_the_notation_is_split_into_styled_pieces() -> None:
    assert notation("SEND EXT[RACT] group_name [, N {a | b}]") == [
        Fragment("keyword", "SEND"),
        Fragment("text", " "),
        Fragment("keyword", "EXT[RACT]"),
        Fragment("text", " "),
        Fragment("slot", "group_name"),
        Fragment("text", " "),
        Fragment("mark", "["),
        Fragment("text", ", "),
        Fragment("keyword", "N"),
        Fragment("text", " "),
        Fragment("mark", "{"),
        Fragment("slot", "a"),
        Fragment("text", " "),
        Fragment("mark", "|"),
        Fragment("text", " "),
        Fragment("slot", "b"),
        Fragment("mark", "}"),
        Fragment("mark", "]"),
    ]


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_plain_text_of_every_page_is_complete(path: Path) -> None:
    text = plain(fragments([path]))
    page = pages.read(path)
    assert text.startswith(f"{page.title}\n")
    squeezed = " ".join(text.split())
    assert all(" ".join(line.split()) in squeezed for line in (*page.syntax, *page.examples))
    assert "\n## " not in text


@pytest.mark.parametrize(
    ("subject", "stems"),
    [
        ("BR", ["br"]),
        ("add extract ext1, tranlog", ["add_extract"]),
        ("send extract", ["send_extract"]),
        ("@strcat", ["strcat"]),
        ("nonsense", []),
    ],
)
def test_the_pages_that_help_finds(subject: str, stems: list[str]) -> None:
    found = [path.stem for path in find(subject)]
    assert found[: len(stems)] == stems
    assert bool(found) is bool(stems)


def test_the_sample_page_of_the_manual_is_a_page() -> None:
    """Regression: the sample in grammar/README.md described options that the page no longer had."""
    text = (pages.folder() / "README.md").read_text(encoding="utf-8")
    sample = text[text.index("    # DISCARDFILE") : text.index("The file name is the title")]
    page = pages.index("parameters")["discardfile"].read_text(encoding="utf-8")
    assert [line.removeprefix("    ") for line in sample.rstrip().splitlines()] == page.rstrip().splitlines()
