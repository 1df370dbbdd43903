"""The line that says that a statement works."""

from __future__ import annotations

import pytest
from processes import until

from ggshell.shell import working
from ggshell.shell.working import Working


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(working, "EVERY_SECONDS", 0.001)


def test_a_long_statement_is_shown_without_its_secret_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    line = Working()
    with line.line("dblogin userid u password geheim"):
        until("the line is shown", lambda: line._shown)
    err = capsys.readouterr().err
    assert "\r\x1b[Kdblogin userid u password ******* ... 0 s" in err
    assert err.endswith("\r\x1b[K")
    assert "geheim" not in err


def test_a_question_takes_the_line_away(capsys: pytest.CaptureFixture[str]) -> None:
    line = Working()
    with line.line("delete extract *"):
        until("the line is shown", lambda: line._shown)
        line.pause()
        capsys.readouterr()
    assert capsys.readouterr().err == ""


def test_a_statement_that_uses_the_terminal_itself_has_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Working, "_run", lambda *_: pytest.fail("a line was begun"))
    for text in ("edit params x", "SHELL ls", "watch 1 info all", ""):
        with Working().line(text):
            assert capsys.readouterr().err == ""
