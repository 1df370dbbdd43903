"""Statements that the manual knows and this version does not carry out."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell.ground import Shell

from ggshell.errors import UsageError
from ggshell.shell.results import Note
from ggshell.shell.unfinished import unfinished
from ggshell.syntax import pages
from ggshell.syntax.gaps import gaps_of
from ggshell.syntax.parsed import Parsed

PAGE = """# PAINT WALL
Paints.

- For: GGSCI
{status}
## Syntax
    PAINT WALL colour [, GLOSS] [, COATS number]
    PAINT WALL colour QUICKLY

## Not yet
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


def test_a_statement_that_needs_nothing_missing_has_no_note(page: Path) -> None:
    assert unfinished(Parsed("PAINT WALL", {"colour": "red", "coats": 2}, "paint_wall")) is None


def test_an_action_that_is_missing_is_a_note(page: Path) -> None:
    note = unfinished(Parsed("PAINT WALL QUICKLY", {"colour": "red"}, "paint_wall"))
    assert note == ("GGS-00103", "PAINT WALL QUICKLY is understood but not carried out: it takes its time")


def test_an_option_that_is_missing_refuses_the_statement(page: Path) -> None:
    with pytest.raises(UsageError, match="GLOSS of PAINT WALL is understood but not carried out: there is no brush"):
        unfinished(Parsed("PAINT WALL", {"colour": "red", "gloss": True}, "paint_wall"))


def test_a_page_with_a_status_is_missing_whole(page: Path) -> None:
    page.write_text(PAGE.format(status="- Status: the shop is closed\n"))
    assert gaps_of(page).status == "the shop is closed"
    note = unfinished(Parsed("PAINT WALL", {"colour": "red", "gloss": True}, "paint_wall"))
    assert note is not None
    assert note.message.endswith("the shop is closed")


def test_a_note_is_a_line_of_warning_and_no_failure(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggshell.shell import execute

    note = Note("GGS-00103", "VERSIONS is understood but not carried out: it is a test")
    monkeypatch.setattr(execute, "unfinished", lambda parsed: note if parsed.key == "VERSIONS" else None)
    answer = shell.batch("VERSIONS", "INFO ALL")
    assert (answer.code, answer.err) == (0, f"WARNING {note.code}  {note.message}\n")
    assert "Program" in answer.out
    (found,) = shell.run("--format", "json", "-c", "VERSIONS").objects
    assert (found["status"], found["code"], found["message"], found["rows"]) == ("ok", note.code, note.message, [])
    assert f"> WARNING {note.code}  " in shell.session("versions\nexit\n")
