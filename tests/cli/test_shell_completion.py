"""Completion in the user's shell, tested in a real bash, and the man page, formatted by groff."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ggshell.check.cli import main as check
from ggshell.cli.manual import man_page
from ggshell.cli.options import FLAGS, VALUED, parse_options
from ggshell.cli.shell_completion import CHECK_OPTIONS, DEMO_OPTIONS, MOVE_OPTIONS, script
from ggshell.demo.cli import main as demo
from ggshell.errors import UsageError
from ggshell.move.cli import main as move

pytestmark = pytest.mark.slow

_ASK = """
source ./completion.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ggshell
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash_completions(folder: Path, *words: str, **environment: str) -> set[str]:
    """The completions of bash for the last word."""
    (folder / "completion.bash").write_text(script(["bash"]))
    (folder / "dirchk").mkdir(exist_ok=True)
    for name in ("EXT1.cpe", "REP1.cpr"):
        (folder / "dirchk" / name).touch()
    (folder / "checks.oby").touch()
    command = ["bash", "--norc", "-c", _ASK, "bash", "ggshell", *words]
    settings = {"PATH": "/usr/bin:/bin", **environment}
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=settings)
    assert result.stderr == ""
    return set(result.stdout.splitlines()) - {""}


def read_until(terminal: int, wanted: bytes) -> None:
    """Read the output of a terminal until it contains a text."""
    seen = b""
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], 20)
        assert ready, seen
        seen += os.read(terminal, 1 << 16)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--fo"], {"--format"}),
        (["--format", "j"], {"json"}),
        (["--engine", ""], {"auto", "local", "spark"}),
        (["che"], {"check", "checks.oby"}),
        (["check", "che"], {"checks.oby"}),
        (["demo", "s"], {"status"}),
        (["--home", "x", "demo", "d"], {"down"}),
        (["completion", ""], {"bash", "zsh"}),
        (["-c", "STAT"], {"STATS", "STATUS"}),
        (["-c", "sta"], {"start", "stats", "status"}),
        (["-c", '"START EXTRACT E'], {"START EXTRACT EXT1"}),
        (["-c", '"start extract '], {"start extract ext1"}),
        (["-c", '"start extract e'], {"start extract ext1"}),
        (["-c", '"info all; start rep'], {"info all; start replicat", "info all; start rep1"}),
        (["-c", "'info rep1, d"], set()),
        (["-c", '"unreg'], {"unregister extract ext1"}),
        (["-c", '"vers'], {"versions"}),
        (["--format", "=", "js"], {"json"}),
        (["--engine", "="], {"auto", "local", "spark"}),
        (["check", "--format", ""], {"text", "json", "junit", "sarif"}),
        (["check", "--format", "=", "s"], {"sarif"}),
        (["check", "--kind", "re"], {"replicat"}),
        (["demo", "up", "--"], {"--copy", "--mirror", "--kind", "--seed", "--home", "--help"}),
        (["--home", "=", "x", "demo", "load", "--r"], {"--rate"}),
        (["--home", "dir"], {"dirchk"}),
    ],
)
def test_bash_offers_options_files_verbs_and_groups(words: list[str], offered: set[str], tmp_path: Path) -> None:
    assert bash_completions(tmp_path, *words) == offered


def test_groups_are_read_from_the_given_home(tmp_path: Path) -> None:
    (tmp_path / "other" / "dirchk").mkdir(parents=True)
    (tmp_path / "other" / "dirchk" / "SOUTH7.cpd").touch()
    for given in (["--home", "other"], ["--home", "=", "other"], ["--home=other"]):
        assert bash_completions(tmp_path, *given, "-c", '"START SOUTH') == {"START SOUTH7"}
    assert bash_completions(tmp_path, "-c", '"START SOUTH') == set()


def test_options_of_subcommands_are_those_of_their_parsers(capsys: pytest.CaptureFixture[str]) -> None:
    def options(parse: Callable[[list[str]], object], *words: str) -> set[str]:
        with pytest.raises(SystemExit):
            parse([*words, "--help"])
        return set(re.findall(r"(?<![\w-])--[a-z-]+", capsys.readouterr().out))

    assert options(check) == set(CHECK_OPTIONS)
    for action, offered in DEMO_OPTIONS.items():
        assert options(demo, action) == set(offered)
    for action, offered in MOVE_OPTIONS.items():
        assert options(partial(move, home=None, obey=lambda *_: True), action) == set(offered)


def test_bash_completes_in_quotes_at_a_terminal(tmp_path: Path) -> None:
    """The shell itself divides the line into words, and closes the quote after the only completion."""
    (tmp_path / "completion.bash").write_text(script(["bash"]))
    (tmp_path / "dirchk").mkdir()
    (tmp_path / "dirchk" / "EXT1.cpe").touch()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile"], {"PATH": "/usr/bin:/bin", "TERM": "dumb"})  # noqa: S606
    os.write(terminal, b"ggshell() { printf '<%s>' \"$@\"; }; source completion.bash; echo loa''ded\n")
    read_until(terminal, b"loaded")
    for typed, run in (
        (b'-c "start extr\t', b"<-c><start extract ext1>"),
        (b"--home=. --format=js\t", b"<--home=.><--format=json>"),
    ):
        os.write(terminal, b"ggshell " + typed + b"\n")
        read_until(terminal, run)
    os.write(terminal, b"exit\n")
    os.waitpid(pid, 0)
    os.close(terminal)


@pytest.mark.parametrize("home", ["{}/other", "~/other"])
def test_groups_are_read_from_the_home_of_the_configuration_file(tmp_path: Path, home: str) -> None:
    (tmp_path / "other" / "dirchk").mkdir(parents=True)
    (tmp_path / "other" / "dirchk" / "SOUTH7.cpd").touch()
    (tmp_path / "ggshell").mkdir()
    (tmp_path / "ggshell" / "config.toml").write_text(f'color = true\nhome = "{home.format(tmp_path)}"  # mine\n')
    settings = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert bash_completions(tmp_path, "-c", '"START SOUTH', **settings) == {"START SOUTH7"}
    assert bash_completions(tmp_path, "-c", '"START SOUTH', **settings, GGSHELL_HOME=str(tmp_path)) == set()


def test_every_option_is_offered(tmp_path: Path) -> None:
    assert bash_completions(tmp_path, "-") == {*VALUED, *FLAGS}
    assert parse_options(["--echo"]).echo


def test_zsh_uses_the_same_function() -> None:
    assert script(["zsh"]).startswith("#compdef ggshell")
    assert script(["zsh"]).endswith(script(["bash"]).split("\n", 1)[1])


def test_an_unsupported_shell_is_refused() -> None:
    with pytest.raises(UsageError, match="does not support fish"):
        script(["fish"])
    with pytest.raises(UsageError, match="name of a shell"):
        script([])


def test_the_man_page_has_usage_options_and_commands() -> None:
    lines = man_page().splitlines()
    assert {line.split()[0] for line in lines if line.startswith(".")} == {".TH", ".SH", ".PP", ".TP", ".B"}
    text = "\n".join(lines).replace("\\-", "-")
    assert text.isascii()
    for word in ("SYNOPSIS", "--continue-on-error", ".B ADD EXTRACT", "NO_COLOR", "XDG_CONFIG_HOME", ".SH FILES"):
        assert word in text
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tascii", "-P-c", "-ww"]
        result = subprocess.run(command, input=man_page(), capture_output=True, text=True, check=True)
        assert result.stderr == ""
        shown = re.sub(".\x08", "", result.stdout)  # bold letters are printed twice
        assert max(map(len, shown.splitlines())) <= 80
