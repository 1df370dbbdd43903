"""Statements that the manual knows and this version does not carry out."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.ground import Shell

from ggshell.cli.execute import not_supported
from ggshell.cli.results import Note
from ggshell.errors import StatementError
from ggshell.language import pages
from ggshell.language.grammar import Parsed
from ggshell.language.unsupported import gaps_of, notes_of

PAGE = """# PAINT WALL
Paints.

- For: GGSCI
{status}
## Syntax
    PAINT WALL colour [, GLOSS] [, COATS number]
    PAINT WALL colour QUICKLY

## Not supported
    GLOSS: there is no brush for it
    PAINT WALL QUICKLY: it takes its time

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
    """What the shell says of a statement with these arguments."""
    return not_supported(Parsed(key, args, page.stem, notes_of(page, key, args, {})))


def test_a_statement_that_needs_nothing_missing_has_no_note(page: Path) -> None:
    assert answer(page, "PAINT WALL", {"colour": "red", "coats": 2}) is None


def test_an_action_that_is_missing_is_a_note(page: Path) -> None:
    note = answer(page, "PAINT WALL QUICKLY", {"colour": "red"})
    assert note == ("GGS-00103", "PAINT WALL QUICKLY is not supported: it takes its time")


def test_an_option_that_is_missing_refuses_the_statement(page: Path) -> None:
    with pytest.raises(StatementError, match="GLOSS of PAINT WALL is not supported: there is no brush"):
        answer(page, "PAINT WALL", {"colour": "red", "gloss": True})


def test_a_page_with_a_status_is_missing_whole(page: Path) -> None:
    page.write_text(PAGE.format(status="- Not supported: the shop is closed\n"))
    assert gaps_of(page).status == "the shop is closed"
    note = answer(page, "PAINT WALL", {"colour": "red", "gloss": True})
    assert note is not None
    assert note.message.endswith("the shop is closed")


def test_a_note_is_a_line_of_warning_and_no_failure(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggshell.cli import execute

    note = Note("GGS-00103", "VERSIONS is not supported: it is a test")
    monkeypatch.setattr(execute, "not_supported", lambda parsed: note if parsed.key == "VERSIONS" else None)
    shell.home.ensure()
    answer = shell.batch("VERSIONS", "INFO ALL")
    assert (answer.code, answer.err) == (0, f"WARNING {note.code}  {note.message}\n")
    assert "Program" in answer.out
    (found,) = shell.run("--format", "json", "-c", "VERSIONS").objects
    assert (found["status"], found["code"], found["message"], found["rows"]) == ("ok", note.code, note.message, [])
    assert f"> WARNING {note.code}  " in shell.session("versions\nexit\n")
