"""Long lines of messages at a terminal: no word is broken, and a statement in them is still one line."""

from __future__ import annotations

import io

import pytest

from ggshell.cli.output.wrapping import wrapped


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def rows(text: str) -> list[str]:
    """The rows of a terminal of 40 columns."""
    return [line[at : at + 40].rstrip() for line in text.split("\n") for at in range(0, max(1, len(line)), 40)]


def test_words_are_not_broken_and_the_line_stays_one() -> None:
    text = "ERROR: the connection was lost: nothing has arrived for 30 seconds\n  Hint: START SERVICE\n"
    shown = wrapped(text, Screen())
    assert rows(shown) == [
        "ERROR: the connection was lost: nothing",
        "  has arrived for 30 seconds",
        "  Hint: START SERVICE",
        "",
    ]
    assert shown.count("\n") == 2
    assert shown.split() == text.split()


def test_the_value_of_a_label_continues_below_it() -> None:
    assert rows(wrapped("Error      GGS-00303 no space left on the device in use", Screen())) == [
        "Error      GGS-00303 no space left on",
        "           the device in use",
    ]


@pytest.mark.parametrize(
    "text",
    ["short", "x" * 90, "  " + "x" * 90 + "\n  " + " " * 60 + "^", "\u4e2d " * 40, "\x1b[1m" + "red " * 20],
    ids=["short", "one word", "marked", "wide characters", "colors"],
)
def test_what_cannot_be_broken_well_stays_as_it_is(text: str) -> None:
    assert wrapped(text, Screen()) == text


def test_nothing_is_changed_in_a_pipe() -> None:
    assert wrapped("word " * 40, io.StringIO()) == "word " * 40


def test_a_long_word_goes_on_where_it_is() -> None:
    assert rows(wrapped("see " + "x" * 50 + " and more", Screen())) == ["see " + "x" * 36, "x" * 14 + " and more"]
