"""Batches: exit codes, formats, obey files, and output streams."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from cli.shell import Shell

import ggshell

JSON_KEYS = ["statement", "status", "code", "message", "hint", "columns", "rows"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-c", "INFO ALL"], 0),
        (["-c", "info all; info pmp1"], 0),
        (["-c", "INFO EXTRACT nope"], 1),
        (["-c", "INFO EXTRACT nope; INFO ALL"], 1),
        (["--continue-on-error", "-c", "INFO EXTRACT nope; INFO ALL"], 1),
        (["-c", "INOF ALL"], 3),
        (["-c", "INFO ALL; INFO EXTRACT pmp1, DETIAL"], 3),
        (["--nonsense"], 2),
        (["--format", "xml", "-c", "INFO ALL"], 2),
        (["--format"], 2),
        (["no-such-file.oby"], 2),
        (["paramfile"], 2),
        (["-c", "INFO ALL", "file.oby"], 2),
        (["--version"], 0),
        (["--help"], 0),
    ],
)
def test_exit_codes(with_groups: Shell, arguments: list[str], code: int) -> None:
    answer = with_groups.run(*arguments)
    assert answer.code == code
    assert "Traceback" not in answer.err


def test_the_version_is_that_of_the_package(shell: Shell) -> None:
    assert shell.run("--version").out == f"ggshell {ggshell.__version__}\n"


def test_a_syntax_error_in_the_last_line_prevents_the_first_from_running(with_groups: Shell) -> None:
    answer = with_groups.batch("DELETE EXTRACT pmp1", "INFO ALL", "INOF ALL", "INFO EXTRACT x DETIAL")
    assert answer.code == 3
    assert answer.out == ""
    assert "(3:1)" in answer.err
    assert "(4:16)" in answer.err
    assert "did you mean INFO?" in answer.err
    assert with_groups.home.groups()[1].group == "PMP1"


def test_a_batch_stops_at_the_first_error_unless_continue_on_error(with_groups: Shell) -> None:
    assert "EXT1" not in with_groups.batch("INFO nope", "STATUS ext1").out
    answer = with_groups.run("--continue-on-error", "-c", "INFO nope; STATUS ext1")
    assert answer.out == "EXTRACT EXT1: STOPPED\n"
    assert answer.err.startswith("ERROR: group NOPE does not exist.")


def test_a_batch_has_no_banner_and_no_prompt_and_echo_shows_statements(with_groups: Shell) -> None:
    assert "GGSCI" not in with_groups.batch("INFO ALL").out
    out = with_groups.run("--echo", "-c", "STATUS ext1; STATUS pmp1").out
    assert [line.partition("> ")[2] for line in out.splitlines() if line.startswith("GGSCI")] == [
        "STATUS ext1",
        "STATUS pmp1",
    ]


def test_json_is_one_object_per_line_with_the_same_keys_for_success_and_error(with_groups: Shell) -> None:
    answer = with_groups.run("--format", "json", "--continue-on-error", "-c", "STATUS ext1; STATUS nope")
    good, bad = answer.objects
    assert list(good) == JSON_KEYS == list(bad)
    assert good == {
        "statement": "STATUS ext1",
        "status": "ok",
        "code": "",
        "message": "",
        "hint": "",
        "columns": ["type", "group", "status", "error_code", "error"],
        "rows": [["EXTRACT", "EXT1", "STOPPED", None, None]],
    }
    assert (bad["status"], bad["code"], bad["rows"]) == ("error", "GGS-00201", [])
    assert (bad["message"], bad["hint"]) == ("group NOPE does not exist.", "list all groups with INFO ALL")
    assert answer.err == ""


def test_json_of_a_syntax_error(shell: Shell) -> None:
    (found,) = shell.run("--format", "json", "-c", "INOF ALL").objects
    assert (found["status"], found["code"]) == ("error", "GGS-00101")


def test_all_data_formats_have_the_same_rows(with_groups: Shell) -> None:
    statement = ["-c", "STATUS ER *"]
    rows = list(csv.reader(io.StringIO(with_groups.run("--format", "csv", *statement).out)))
    assert rows == [
        ["type", "group", "status", "error_code", "error"],
        ["EXTRACT", "EXT1", "STOPPED", "", ""],
        ["EXTRACT", "PMP1", "STOPPED", "", ""],
        ["REPLICAT", "REP1", "STOPPED", "", ""],
    ]
    table = with_groups.run("--format", "table", *statement).out
    assert "| EXTRACT  | EXT1    | STOPPED  |" in table
    markdown = with_groups.run("--format", "markdown", *statement).out
    assert markdown.splitlines()[1].startswith("|--")
    vertical = with_groups.run("--format", "vertical", *statement).out
    assert vertical.splitlines()[:4] == [
        "-[ 1 ]------------------------",
        "type       | EXTRACT",
        "group      | EXT1",
        "status     | STOPPED",
    ]


def test_rows_have_as_many_values_as_columns_in_every_command_on_groups(with_groups: Shell) -> None:
    statements = (
        "INFO ALL; INFO ER *; INFO ext1, DETAIL; STATUS ER *; LAG ER *; INFO MGR; SHOW; VERSIONS; HISTORY; HELP"
    )
    for found in with_groups.run("--format", "json", "-c", statements).objects:
        assert found["status"] == "ok", found
        assert found["rows"], found
        assert {len(row) for row in found["rows"]} == {len(found["columns"])}, found["statement"]


def test_obey_files_support_comments_continuation_and_semicolons(with_groups: Shell, tmp_path: Path) -> None:
    file = tmp_path / "all.oby"
    file.write_text("-- groups\nstatus ext1; status pmp1 -- both\nSTATUS &\n  EXTRACT ext1\n")
    answer = with_groups.run(str(file))
    assert answer.code == 0
    assert answer.out.count("STOPPED") == 3
    file.write_text("status ext1\nstatus extract, oops oops\n")
    assert f"({file}:2:" in with_groups.run(str(file)).err


def test_nested_obey_requires_allownested_and_is_limited_to_sixteen_levels(with_groups: Shell) -> None:
    root = with_groups.home.root
    (root / "outer.oby").write_text("OBEY inner.oby\n")
    (root / "inner.oby").write_text("STATUS ext1\n")
    refused = with_groups.batch("OBEY outer.oby")
    assert refused.code == 1
    assert "OBEY is not allowed in an obey file" in refused.err
    assert with_groups.batch("ALLOWNESTED", "OBEY outer.oby").out.endswith("EXTRACT EXT1: STOPPED\n")
    (root / "loop.oby").write_text("STATUS ext1\nOBEY loop.oby\n")
    looped = with_groups.batch("ALLOWNESTED", "OBEY loop.oby")
    assert looped.code == 1
    assert looped.out.count("EXT1") == 16
    assert "nested deeper than 16" in looped.err


def test_an_obey_file_with_a_syntax_error_runs_no_statement(with_groups: Shell) -> None:
    (with_groups.home.root / "bad.oby").write_text("STATUS ext1\nSTATSU ext1\n")
    answer = with_groups.batch("OBEY bad.oby", "STATUS pmp1")
    assert answer.code == 1
    assert answer.out == ""


@pytest.mark.slow
def test_shell_commands_run_and_can_be_disabled(shell: Shell) -> None:
    shell.home.ensure()
    assert shell.batch("SHELL echo one; echo two").out == "one\ntwo\n"
    assert shell.batch("SHELL echo all --long -- a comment").out == "all --long\n"
    failed = shell.batch("HOST exit 7")
    assert failed.code == 1
    assert "code 7" in failed.err
    refused = shell.run("--no-shell", "-c", "SHELL echo one")
    assert (refused.code, refused.out) == (1, "")


def test_exit_ends_the_batch(with_groups: Shell) -> None:
    assert with_groups.batch("EXIT", "STATUS ext1").out == ""


def test_an_unexpected_exception_is_shown_briefly_and_saved_with_its_traceback(
    with_groups: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ggshell.cli.registry import COMMANDS

    def fails(_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setitem(COMMANDS.load_all(), "VERSIONS", (fails, ()))
    answer = with_groups.batch("VERSIONS")
    assert answer.code == 1
    assert answer.err.count("\n") == 2
    assert "internal error: ZeroDivisionError: a bug" in answer.err
    (crash,) = with_groups.home.root.glob("ggshell-crash-*.txt")
    assert "Traceback" in crash.read_text()


def test_the_home_can_be_set_in_the_environment(
    with_groups: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ggshell.cli.main import main
    from ggshell.cli.options import parse_options

    monkeypatch.setenv("GGSHELL_HOME", str(with_groups.home.root))
    assert main(["-c", "STATUS ext1"]) == 0
    assert "EXT1" in capsys.readouterr().out
    assert parse_options(["--home=/x"]).home == "/x"
    assert parse_options([], {}).home == "."


@pytest.mark.slow
def test_continue_on_error_runs_the_statements_around_a_syntax_error(shell: Shell, tmp_path: Path) -> None:
    lines = ("CREATE SUBDIRS", "INFO EXTRAKT x", "SH echo after")
    refused = shell.batch(*lines)
    assert (refused.code, refused.out) == (3, "")
    answer = shell.run("--continue-on-error", "-c", "\n".join(lines))
    assert answer.code == 1
    assert answer.out.endswith("after\n")
    assert answer.err.count("ERROR") == 1
    assert "(2:6)" in answer.err
    file = tmp_path / "x.oby"
    file.write_text("\n".join(lines))
    nested = shell.run("--continue-on-error", "-c", f"OBEY {file}; SH echo behind")
    assert (nested.code, nested.out.endswith("after\nbehind\n"), nested.err.count("ERROR")) == (1, True, 1)


@pytest.mark.parametrize("statement", ["INFO ALL", "STATUS MGR", "INFO EXTRACT x", "STOP MGR", "VIEW GGSEVT"])
def test_a_missing_home_is_an_error_for_commands_that_only_read(shell: Shell, statement: str) -> None:
    wrong = shell.home.root / "mistyped"
    answer = shell.run("--home", str(wrong), "-c", statement)
    assert answer.code == 1
    assert f"the home {wrong} does not exist" in answer.err
    assert not wrong.exists()
    assert shell.run("--home", str(wrong), "-c", f"CREATE SUBDIRS; {statement.replace('EXTRACT x', 'ALL')}").code in (
        0,
        1,
    )
    assert wrong.is_dir()


def test_a_home_that_is_a_file_is_not_a_directory(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    answer = shell.run("--home", str(file), "-c", "INFO ALL")
    assert (answer.code, f"ERROR: the home {file} is not a directory\n" in answer.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["extract"], "extract requires a parameter file - ggshell extract paramfile FILE"),
        (["replicat"], "replicat requires a parameter file"),
        (["man", "extra"], "man does not take arguments - ggshell man"),
        (["completion", "fish"], "completion does not support fish - ggshell completion bash|zsh"),
    ],
)
def test_a_subcommand_says_what_is_wrong(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ggshell.cli.main import main

    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"ggshell: {message}")
