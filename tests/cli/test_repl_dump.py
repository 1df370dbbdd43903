"""Logdump's line editor: completion, an interrupted line, the end."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from ggshell.cli.complete import DumpCompleter
from ggshell.cli.repl_dump import reader


def test_the_line_editor_returns_lines_and_handles_ctrl_c_and_ctrl_d() -> None:
    with create_pipe_input() as given:
        read = reader(InMemoryHistory(), (given, DummyOutput()))
        given.send_text("pos 0\r")
        assert read("Logdump 1 >") == "pos 0"
        given.send_text("abc\x03")
        assert read("Logdump 2 >") == ""
        given.send_text("\x04")
        assert read("Logdump 3 >") is None


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sca", "scanforheader"),
        ("pos 0; GHD", "GHDR"),
        ("filter exc", "exclude"),
        ("scanfortype insert; fileh", "fileheader"),
    ],
)
def test_words_of_the_grammar_are_offered(typed: str, offered: str) -> None:
    found = DumpCompleter().get_completions(Document(typed), CompleteEvent())
    assert offered in [each.text for each in found]
