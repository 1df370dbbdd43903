"""Completion in the user's shell, tested in a real bash, and the man page, formatted by groff."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ggshell.cli.manual import man_page
from ggshell.cli.options import FLAGS, VALUED, parse_options
from ggshell.cli.shell_completion import script
from ggshell.errors import UsageError

pytestmark = pytest.mark.slow

_ASK = """
source ./completion.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ggshell
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash_completions(folder: Path, *words: str) -> set[str]:
    """The completions of bash for the last word."""
    (folder / "completion.bash").write_text(script(["bash"]))
    (folder / "dirchk").mkdir(exist_ok=True)
    for name in ("EXT1.cpe", "REP1.cpr"):
        (folder / "dirchk" / name).touch()
    (folder / "checks.oby").touch()
    command = ["bash", "--norc", "-c", _ASK, "bash", "ggshell", *words]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert result.stderr == ""
    return set(result.stdout.split())


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
        (["-c", "EXT"], {"EXT1"}),
        (["--home", "dir"], {"dirchk"}),
    ],
)
def test_bash_offers_options_files_verbs_and_groups(words: list[str], offered: set[str], tmp_path: Path) -> None:
    assert bash_completions(tmp_path, *words) == offered


def test_groups_are_read_from_the_given_home(tmp_path: Path) -> None:
    (tmp_path / "other" / "dirchk").mkdir(parents=True)
    (tmp_path / "other" / "dirchk" / "SOUTH7.cpd").touch()
    assert bash_completions(tmp_path, "--home", "other", "-c", "SOUTH") == {"SOUTH7"}
    assert bash_completions(tmp_path, "-c", "SOUTH") == set()


def test_every_option_is_offered(tmp_path: Path) -> None:
    assert bash_completions(tmp_path, "-") == {*VALUED, *FLAGS}
    assert parse_options(["--echo"]).echo


def test_zsh_uses_the_same_function() -> None:
    assert script(["zsh"]).startswith("#compdef ggshell")
    assert script(["zsh"]).endswith(script(["bash"]).split("\n", 1)[1])


def test_an_unsupported_shell_is_refused() -> None:
    with pytest.raises(UsageError, match="name of a shell"):
        script(["fish"])


def test_the_man_page_has_usage_options_and_commands() -> None:
    lines = man_page().splitlines()
    assert {line.split()[0] for line in lines if line.startswith(".")} == {".TH", ".SH", ".nf", ".fi", ".TP", ".B"}
    text = "\n".join(lines).replace("\\-", "-")
    assert text.isascii()
    for word in ("SYNOPSIS", "--continue-on-error", ".B ADD EXTRACT", "NO_COLOR"):
        assert word in text
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww"]
        result = subprocess.run(command, input=man_page(), capture_output=True, text=True, check=True)
        assert result.stderr == ""
