"""The prompt, with keys from a pipe: Enter, continuation, pasted scripts, completion, history without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.shell import Shell
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from ggshell.cli import repl
from ggshell.cli.complete import LiveNames, StatementCompleter
from ggshell.cli.options import Options
from ggshell.cli.repl import history_file, is_whole, prompt_session
from ggshell.cli.repl_colors import StatementLexer, colored, words_of
from ggshell.cli.session import Session

ENTER, CTRL_C, CTRL_D, CTRL_R, UP = "\r", "\x03", "\x04", "\x12", "\x1b[A"
PASTE = "\x1b[200~{}\x1b[201~"


class Prompt:
    """A prompt that the test types into."""

    def __init__(self, shell: Shell, keys: PipeInput, *earlier: str) -> None:
        session = Session(Options(home=str(shell.home.root)))
        session.interactive = True
        self.history = InMemoryHistory(list(earlier))
        self._keys = keys
        self._lines = prompt_session(session, self.history, lambda: "the bottom line", (keys, DummyOutput()))

    def type(self, *keys: str) -> str:
        self._keys.send_text("".join(keys))
        return self._lines.prompt("> ")


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as made, create_app_session(input=made, output=DummyOutput()):
        yield made


@pytest.fixture
def prompt(with_groups: Shell, keys: PipeInput) -> Prompt:
    return Prompt(with_groups, keys, "info all", "status ext1")


def test_enter_sends_a_statement(prompt: Prompt) -> None:
    assert prompt.type("info mgr", ENTER) == "info mgr"


def test_enter_after_an_ampersand_or_an_open_parenthesis_begins_a_new_line(prompt: Prompt) -> None:
    assert prompt.type("status &", ENTER, "ext1", ENTER) == "status &\next1"
    assert prompt.type("add trandata s.t cols (a,", ENTER, "b)", ENTER) == "add trandata s.t cols (a,\nb)"


def test_an_empty_line_sends_an_incomplete_statement(prompt: Prompt) -> None:
    assert prompt.type("x (", ENTER, ENTER) == "x (\n"


def test_a_pasted_script_is_sent_as_a_whole(prompt: Prompt) -> None:
    script = "info all\n-- comment\nstatus ext1;\ninfo mgr"
    assert prompt.type(PASTE.format(script), ENTER) == script


def test_tab_completes_the_common_part(with_groups: Shell) -> None:
    completer = StatementCompleter(LiveNames(Session(Options(home=str(with_groups.home.root)))))
    text = "info mgr;\npurge ext"
    found = list(completer.get_completions(Document(text), CompleteEvent(completion_requested=True)))
    assert [(each.text, each.start_position) for each in found] == [("exttrail", -3)]


def test_the_history_is_filtered_by_the_typed_text_and_searched(prompt: Prompt) -> None:
    assert prompt.type(UP, ENTER) == "status ext1"
    assert prompt.type("info", UP, ENTER) == "info all"
    assert prompt.type(CTRL_R, "EXT1", ENTER, ENTER).startswith("status ext1")


def test_ctrl_c_and_ctrl_d_raise_their_exceptions(prompt: Prompt) -> None:
    with pytest.raises(KeyboardInterrupt):
        prompt.type("info all", CTRL_C)
    with pytest.raises(EOFError):
        prompt.type(CTRL_D)


def test_ctrl_c_discards_the_line_and_ctrl_d_ends_the_session(prompt: Prompt, keys: PipeInput) -> None:
    keys.send_text("half a statement" + CTRL_C)
    with pytest.raises(KeyboardInterrupt):
        repl._read(prompt._lines, "\n> ")
    keys.send_text(CTRL_D)
    assert repl._read(prompt._lines, "\n> ") is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("info all", True),
        ("info all &", False),
        ("info all & -- goes on", False),
        ("add trandata s.t, cols (a", False),
        ("add trandata s.t, cols (a, b)", True),
        ("desc '('", True),
        ("x (;", True),
        ("", True),
    ],
)
def test_which_statements_are_complete(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_the_history_file_has_no_secrets_and_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = history_file()
    history = repl._Discreet(str(path))
    history.append_string("dblogin userid u, password geheim")
    assert "geheim" not in path.read_text()
    assert list(repl._Discreet(str(path)).load_history_strings()) == ["dblogin userid u, password *******"]
    assert path.stat().st_mode & 0o077 == 0


def styles(line: str, verb: str = "") -> dict[str, str]:
    return {piece[1]: piece[0].removeprefix("class:") for piece in colored(line, verb)}


def test_colors() -> None:
    found = styles("add exttrail ./dirdat/ea, extract 'e 1', megabytes 50 -- why")
    assert (found["add"], found["exttrail"], found["megabytes"]) == ("keyword",) * 3
    assert (found["'e 1'"], found["50"], found["-- why"]) == ("string", "number", "comment")
    assert styles("nonsense all")["nonsense"] == "unknown"
    assert styles("info all; nonsense")["nonsense"] == "unknown"
    assert styles("detail", "INFO")["detail"] == "keyword"
    assert {"EXT", "EXTR", "EXTRACT"} <= words_of("INFO")


def test_colors_of_a_line_follow_the_statement_that_it_continues() -> None:
    line = StatementLexer().lex_document(Document("info extract &\next1, detail"))
    assert ("class:keyword", "detail") in line(1)
    assert line(7) == []


@pytest.mark.parametrize("text", ["", "   ", "'", '"', "(((", "a'b\"c", "\t;;--", "é ü 漢字"])
def test_colors_do_not_change_the_text(text: str) -> None:
    assert "".join(piece[1] for piece in colored(text)) == text
