"""The line that shows that a statement is still running."""

from __future__ import annotations

import pytest
from processes import until

from ggshell.cli.output import progress
from ggshell.cli.output.progress import Working


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.001)


def test_a_long_statement_is_shown_without_its_secret_and_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    line = Working()
    with line.line("dblogin userid u password geheim"):
        until("the line is shown", lambda: line._shown)
    err = capsys.readouterr().err
    assert "\r\x1b[Kdblogin userid u password ******* ... 0 s" in err
    assert err.endswith("\r\x1b[K")
    assert "geheim" not in err


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        ("100", "compare north to sou ... 0 s big.t, table 1 of 1: 1,200,000 of about 3,010,000 rows, 40 %, 8 s left"),
        ("80", "0 s big.t, table 1 of 1: 1,200,000 of about 3,010,000 rows, 40 %, 8 s left"),
        ("40", "0 s big.t, table 1 of 1: 1,200,000 of a"),
    ],
)
def test_the_line_fits_the_terminal(
    width: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that wraps would stay on the screen."""
    monkeypatch.setenv("COLUMNS", width)
    line, seen = Working(), list[str]()
    with line.line("compare north to south, table big.*, lag 12"):
        line.progress("big.t, table 1 of 1: 1,200,000 of about 3,010,000 rows, 40 %, 8 s left")

        def is_shown() -> bool:
            seen.extend(capsys.readouterr().err.split("\r\x1b[K"))
            return shown in seen

        until("the line is shown", is_shown)
    assert max(map(len, seen)) < int(width)


def test_a_question_removes_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = Working()
    with line.line("delete extract *"):
        until("the line is shown", lambda: line._shown)
        line.pause()
        capsys.readouterr()
    assert capsys.readouterr().err == ""


def test_a_statement_that_uses_the_terminal_has_no_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Working, "_run", lambda *_: pytest.fail("a line was begun"))
    for text in ("edit params x", "SHELL ls", "watch 1 info all", ""):
        with Working().line(text):
            assert capsys.readouterr().err == ""


def test_ctrl_c_while_the_line_is_removed_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Working()
    remove, calls = line._remove, []

    def interrupted() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove()

    monkeypatch.setattr(line, "_remove", interrupted)
    with pytest.raises(KeyboardInterrupt), line.line("info all"):
        until("the line is shown", lambda: line._shown)
    assert not line._shown
    assert line._ended.is_set()
