"""GGSCI sessions without a terminal: prompts and their numbers, history, questions, and errors."""

from __future__ import annotations

import re

import pytest
from cli.shell import Shell

from ggshell.cli.conversation import recalled
from ggshell.errors import NotFoundError


def prompts(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^GGSCI \([^)]*\) (\d+)> ", text, re.MULTILINE)]


def test_a_session_continues_after_errors(with_groups: Shell) -> None:
    out = with_groups.session("inof all\ninfo nope\nstatus ext1\nexit\n")
    assert "ERROR: unknown command inof" in out
    assert "ERROR: group NOPE does not exist." in out
    assert "EXTRACT EXT1: STOPPED" in out


def test_every_line_increments_the_prompt_number_including_empty_ones(with_groups: Shell) -> None:
    assert prompts(with_groups.session("\nstatus ext1\n\nexit\n")) == [1, 2, 3, 4]


def test_a_line_can_have_several_statements_and_continue_on_the_next_line(with_groups: Shell) -> None:
    out = with_groups.session("status ext1; status pmp1\nstatus &\nrep1\nexit\n")
    assert re.findall(r"(\w+): STOPPED", out) == ["EXT1", "PMP1", "REP1"]


def test_history_is_shown_and_statements_are_repeated(with_groups: Shell) -> None:
    out = with_groups.session("status ext1\nhistory\n!\n! 1\n! stat\n! 99\nexit\n")
    assert "GGSCI Command History\n\n    1: status ext1\n    2: history\n" in out
    assert out.count("GGSCI Command History") == 2
    assert out.count("EXTRACT EXT1: STOPPED") == 3
    assert "the history does not contain this statement" in out


@pytest.mark.parametrize(("text", "found"), [("!", "c"), ("! 1", "a one"), ("!-2", "b"), ("! A", "a one")])
def test_a_statement_is_recalled_by_number_offset_or_text(text: str, found: str) -> None:
    assert recalled(["a one", "b", "c"], text) == found


@pytest.mark.parametrize("text", ["!", "! 1", "! x"])
def test_recall_from_an_empty_history_fails(text: str) -> None:
    with pytest.raises(NotFoundError):
        recalled([], text)


def test_an_obey_file_echoes_its_statements_and_continues_after_errors(with_groups: Shell) -> None:
    (with_groups.home.root / "x.oby").write_text("info nope\nstatus ext1\n")
    out = with_groups.session("obey x.oby\nexit\n")
    assert prompts(out) == [1, 2, 3, 4]
    assert re.search(r"2> info nope\nERROR: ", out)
    assert "EXTRACT EXT1: STOPPED" in out


def test_a_question_is_answered_by_the_next_line(with_groups: Shell) -> None:
    assert "not done" in with_groups.session("delete extract *\nn\nexit\n")
    assert len(with_groups.home.groups()) == 3
    out = with_groups.session("delete extract *\ny\nexit\n")
    assert "Deleted EXTRACT EXT1." in out
    assert [entry.group for entry in with_groups.home.groups()] == ["REP1"]


def test_data_formats_have_no_banner_and_no_prompts(with_groups: Shell) -> None:
    out = with_groups.session("status ext1\nexit\n", "--format", "csv")
    assert out == "type,group,status,error_code,error\nEXTRACT,EXT1,STOPPED,,\n"


def test_the_end_of_the_input_ends_the_session(with_groups: Shell) -> None:
    assert prompts(with_groups.session("status ext1")) == [1, 2]
    assert prompts(with_groups.session("")) == [1]
