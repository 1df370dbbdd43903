"""Statements that are in the manual but not supported by this version."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.shell import Shell

from ggshell.cli.execute import not_supported
from ggshell.cli.results import Note
from ggshell.errors import StatementError
from ggshell.language import grammar, pages
from ggshell.language.grammar import Parsed
from ggshell.language.unsupported import gaps_of, idle_arguments, notes_of

PAGE = """# PAINT WALL
Paints.

- For: GGSCI
{status}
## Syntax
    PAINT WALL color [, GLOSS] [, COATS number]
    PAINT WALL color QUICKLY

## Not supported
    GLOSS: there is no brush for it
    PAINT WALL QUICKLY: it takes its time

## Without effect
    COATS: one coat always covers

## Examples
    PAINT WALL red
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "paint_wall.md"
    path.write_text(PAGE.format(status=""))
    monkeypatch.setattr(pages, "index", lambda kind: {"paint_wall": path})
    return path


def answer(page: Path, key: str, args: dict[str, object]) -> Note | None:
    """The shell's answer to a statement with these arguments."""
    return not_supported(Parsed(key, args, page.stem, notes_of(page, key, args, {})))


def test_a_supported_statement_has_no_note(page: Path) -> None:
    assert answer(page, "PAINT WALL", {"color": "red", "coats": 2}) is None


def test_an_unsupported_action_is_a_note(page: Path) -> None:
    note = answer(page, "PAINT WALL QUICKLY", {"color": "red"})
    assert note == ("GGS-00103", "PAINT WALL QUICKLY is not supported: it takes its time")


def test_a_statement_with_an_unsupported_option_is_refused(page: Path) -> None:
    with pytest.raises(StatementError, match="GLOSS of PAINT WALL is not supported: there is no brush"):
        answer(page, "PAINT WALL", {"color": "red", "gloss": True})


def test_a_page_with_a_status_is_not_supported_at_all(page: Path) -> None:
    page.write_text(PAGE.format(status="- Not supported: the shop is closed\n"))
    assert gaps_of(page).status == "the shop is closed"
    note = answer(page, "PAINT WALL", {"color": "red", "gloss": True})
    assert note is not None
    assert note.message.endswith("the shop is closed")


def test_a_note_is_a_warning_line_and_not_a_failure(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggshell.cli import execute

    note = Note("GGS-00103", "VERSIONS is not supported: it is a test")
    monkeypatch.setattr(execute, "not_supported", lambda parsed: note if parsed.key == "VERSIONS" else None)
    shell.home.ensure()
    answer = shell.batch("VERSIONS", "INFO ALL")
    assert (answer.code, answer.err) == (0, f"WARNING {note.code}  {note.message}\n")
    assert "Program" in answer.out
    (found,) = shell.run("--format", "json", "-c", "VERSIONS").objects
    expected = ("not supported", note.code, note.message, [])
    assert (found["status"], found["code"], found["message"], found["rows"]) == expected
    assert f"> WARNING {note.code}  " in shell.session("versions\nexit\n")


@pytest.mark.parametrize(
    "statement",
    [
        "STATS REPLICAT fin, TOTAL, TABLE acct, REPORTRATE HR, RESET, NOREPORTDETAIL",
        "STATS EXTRACT fin, REPORTFETCH",
        "REGISTER EXTRACT fin LOGRETENTION",
        "REGISTER EXTRACT fin DATABASE SHARE AUTOMATIC OPTIMIZED",
        "UNREGISTER EXTRACT fin LOGRETENTION",
        "ADD TRANDATA s.t, NOSCHEDULINGCOLS, PREPARECSN WAIT",
        "DELETE TRANDATA s.t NOSCHEDULINGCOLS",
        "DELETE EXTTRAIL ./dirdat/ea !",
    ],
)
def test_an_option_without_effect_is_accepted(statement: str) -> None:
    """Regression: examples of the vendor's manual were refused for asking for what is always so."""
    parsed = grammar.parse(statement)
    assert parsed.notes == ()
    assert not idle_arguments(pages.index("commands")[parsed.page]) & parsed.args.keys()
