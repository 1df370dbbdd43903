"""The shell at a terminal, with a real pseudo terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.shell import Shell, log_extract
from cli.terminal import Terminal

from ggshell.home.checkpoint import WriteCheckpoint

pytestmark = pytest.mark.slow

SECRET = "hunter2secret"


def test_a_session_at_a_terminal(with_groups: Shell, tmp_path: Path) -> None:
    terminal = Terminal(with_groups.home.root, tmp_path)
    assert "ggshell Command Interpreter for PostgreSQL" in terminal.begin
    assert "EXTRACT EXT1: STOPPED" in terminal.type("status ext1", "2> ")
    asked = terminal.type("alter credentialstore add user u alias a", "Password: ")
    assert SECRET not in asked
    answered = terminal.type(SECRET, "3>")
    assert SECRET not in answered
    assert "altered" in answered
    terminal.type(f"alter credentialstore add user u password {SECRET} alias b", "4>")
    assert terminal.end() == 0
    history = tmp_path / "ggshell" / "history"
    assert "+status ext1" in history.read_text()
    assert SECRET not in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_only_at_a_terminal_an_error_names_the_page_of_its_code(with_groups: Shell, tmp_path: Path) -> None:
    terminal = Terminal(with_groups.home.root, tmp_path)
    assert "  Hint: list all groups with INFO ALL (HELP GGS-00201)\r\n" in terminal.type("status extract none", "2> ")
    assert "  Hint: HELP GGS-00101\r\n" in terminal.type("add extract", "3> ")
    assert terminal.end() == 0
    assert "HELP GGS" not in with_groups.session("status extract none\nadd extract\n")
    assert "HELP GGS" not in with_groups.batch("status extract none").err


def test_a_table_of_ggsci_wider_than_the_terminal_does_not_wrap(shell: Shell, tmp_path: Path) -> None:
    """The terminal has 80 columns. The fixed layout of the target trails has 89."""
    shell.save(log_extract("EXT1", write=(WriteCheckpoint("./dirdat/ea"), WriteCheckpoint("./dirdat/" + "long/" * 12))))
    shell.save(log_extract("EXT2", write=(WriteCheckpoint("./dirdat/eb"),)))
    terminal = Terminal(shell.home.root, tmp_path)
    shown = terminal.type("info extract ext1, detail", "2> ")
    assert "Trail Name | ./dirdat/ea\r\nSeqno      | 0\r\n" in shown
    assert f"Trail Name | ./dirdat/{'long/' * 12}\r\n" in shown
    assert "Trail Name   Seqno  RBA  Max MB  Trail Type\r\n" in terminal.type("info extract ext2, detail", "3> ")
    assert terminal.end() == 0
    assert re.search(r"\n  Trail Name {39}Seqno", shell.batch("info extract ext1, detail").out)


def test_ctrl_c_at_fc_cancels_the_statement(with_groups: Shell, tmp_path: Path) -> None:
    terminal = Terminal(with_groups.home.root, tmp_path)
    terminal.type("status ext1", "2> ")
    terminal.type("fc", r"2\.\.")
    after = terminal.interrupt()
    assert "STOPPED" not in after
    assert terminal.end() == 0


def test_ctrl_c_at_a_question_cancels_the_statement(with_groups: Shell, tmp_path: Path) -> None:
    terminal = Terminal(with_groups.home.root, tmp_path)
    terminal.type("alter credentialstore add user u alias a", "Password: ")
    assert "altered" not in terminal.interrupt()
    assert terminal.end() == 0
