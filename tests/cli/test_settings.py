"""SET, SPOOL and WATCH."""

from __future__ import annotations

import os
import re

import pytest
from cli.shell import Shell

from ggshell.cli.conversation import Conversation
from ggshell.cli.options import Options
from ggshell.cli.output import programs
from ggshell.cli.session import Session
from ggshell.errors import StateError


def type_lines(session: Session, *lines: str) -> None:
    """Run a session in which a user types these lines."""
    left = iter(lines)
    session.interactive = True
    session.options = session.options._replace(color=False)
    Conversation(session, lambda _: next(left, None)).run()


@pytest.fixture
def session(with_groups: Shell) -> Session:
    return Session(Options(home=str(with_groups.home.root)))


def test_the_format_changes_within_a_session(with_groups: Shell) -> None:
    out = with_groups.session("set format csv\nstatus ext1\nset format ggsci\nstatus ext1\nexit\n")
    assert "type,group,status,error_code,error\nEXTRACT,EXT1,STOPPED,,\n" in out
    assert "EXTRACT EXT1: STOPPED" in out
    refused = with_groups.batch("SET FORMAT xml")
    assert (refused.code, "is not a valid format" in refused.err) == (1, True)


def test_timing_is_shown_after_each_answer(with_groups: Shell) -> None:
    out = with_groups.session("set timing on\nstatus ext1\nset timing off\nstatus ext1\nexit\n")
    assert len(re.findall(r"Elapsed: \d+\.\d{3} seconds\.", out)) == 2
    assert re.search(r"EXT1: STOPPED\nElapsed: ", out)
    batch = with_groups.run("--format", "csv", "-c", "SET TIMING ON; STATUS ext1")
    assert "Elapsed" not in batch.out
    assert "Elapsed" in batch.err


def test_spool_saves_prompts_statements_and_answers_without_secrets(with_groups: Shell) -> None:
    file = with_groups.home.root / "today.txt"
    with_groups.session(
        "spool today.txt\nstatus ext1\ndblogin userid u@localhost:1/d password geheim\nspool off\nexit\n"
    )
    text = file.read_text()
    assert "2> status ext1\nEXTRACT EXT1: STOPPED\n" in text
    assert "password *******" in text
    assert "geheim" not in text
    assert "exit" not in text
    refused = with_groups.batch("SPOOL today.txt", "STATUS pmp1")
    assert "SPOOL today.txt APPEND" in refused.err
    assert file.read_text() == text
    with_groups.batch("SPOOL today.txt APPEND", "STATUS pmp1")
    assert file.read_text() == f"{text}Spooling to {file}.\nEXTRACT PMP1: STOPPED\n"


def test_show_lists_the_settings(with_groups: Shell) -> None:
    out = with_groups.session("set editor nano\nset pager off\nset timing on\nshow\nexit\n")
    lines = [line.split() for line in out.splitlines()]
    assert all(pair in lines for pair in (["Editor:", "nano"], ["Pager:", "OFF"], ["Timing:", "ON"], ["Spool:", "OFF"]))


def test_a_spool_file_that_cannot_be_written_is_reported(shell: Shell) -> None:
    refused = shell.batch("SPOOL /nowhere/x")
    assert (refused.code, "cannot write /nowhere/x" in refused.err) == (1, True)


def test_watch_repeats_until_it_is_interrupted(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    pauses: list[float] = []
    session.wait = lambda seconds: pauses.append(seconds) or len(pauses) == 3  # type: ignore[func-returns-value]
    type_lines(session, "watch 7 status ext1", "exit")
    assert pauses == [7, 7, 7]
    assert capsys.readouterr().out.count("EXTRACT EXT1: STOPPED") == 3


def test_watch_stops_at_an_error_and_at_ctrl_c(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: float) -> bool:
        raise KeyboardInterrupt

    session.wait = interrupted
    type_lines(session, "watch 1 status nope", "watch 1 status ext1", "status pmp1", "exit")
    out = capsys.readouterr().out
    assert out.count("NOPE does not exist") == 1
    assert "Interrupted." in out
    assert "EXTRACT PMP1: STOPPED" in out


@pytest.mark.parametrize("text", ["watch 1 watch 2 info all", "watch 1 exit", "watch 1 inof all"])
def test_statements_that_watch_refuses(session: Session, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    type_lines(session, text, "exit")
    assert "ERROR: " in capsys.readouterr().out


def test_watch_needs_a_terminal(with_groups: Shell) -> None:
    refused = with_groups.batch("WATCH 1 INFO ALL")
    assert (refused.code, "requires an interactive terminal" in refused.err) == (1, True)


def test_long_answers_go_through_the_pager(
    session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr(programs, "show", lambda text, chosen: shown.append((text, chosen)))
    monkeypatch.setattr(programs, "is_long", lambda text: len(text) > 500)
    type_lines(session, "set pager most", "help", "status ext1", "set pager off", "help", "exit")
    assert [(text.count("ADD EXTRACT") > 0, chosen) for text, chosen in shown] == [(True, "most")]
    assert capsys.readouterr().out.count("HELP command shows its page") == 1


@pytest.mark.parametrize(
    ("lines", "expected"), [(3, False), (21, False), (23, True)], ids=["short", "just fits", "too long"]
)
def test_which_answers_use_the_pager(lines: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((80, 24)))
    assert programs.is_long("x\n" * lines) is expected
    assert programs.is_long("x" * 80 * lines) is expected


@pytest.mark.slow
def test_without_the_pager_program_the_text_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    programs.show("some text\n", "no-such-pager --x")
    out, err = capsys.readouterr()
    assert out == "some text\n"
    assert "cannot start the pager no-such-pager" in err


@pytest.mark.slow
def test_a_pager_gets_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    programs.show("some text\n", "cat -n")
    assert "1\tsome text" in capfd.readouterr().out


def test_a_noninteractive_session_does_not_confirm(session: Session) -> None:
    with pytest.raises(StateError):
        session.confirm("Really")
