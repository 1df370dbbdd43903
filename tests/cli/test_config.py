"""The user's defaults in ~/.config/ggshell/config.toml, and what takes precedence over them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ggshell.cli.config import config_file
from ggshell.cli.main import main
from ggshell.cli.options import Options, parse_options
from ggshell.cli.session import Session
from ggshell.errors import UsageError

WHOLE = 'home = "/ggs"\nformat = "table"\ntiming = true\ncolor = false\nkey_bindings = "vi"\n'


def options(folder: Path, text: str, *words: str, terminal: bool = True, **environment: str) -> Options:
    file = folder / "ggshell" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return parse_options(words, {"XDG_CONFIG_HOME": str(folder), **environment}, terminal=terminal)


def test_every_setting_sets_a_default(tmp_path: Path) -> None:
    found = options(tmp_path, WHOLE)
    assert (found.home, found.format, found.timing, found.color, found.key_bindings) == (
        *("/ggs", "table", True, False, "vi"),
    )
    assert Session(found).timing


def test_options_and_the_environment_take_precedence(tmp_path: Path) -> None:
    assert options(tmp_path, WHOLE, "--home", "/a", "--format=csv")[:2] == ("/a", "csv")
    assert options(tmp_path, WHOLE, GGSHELL_HOME="/b").home == "/b"
    assert options(tmp_path, "color = true", "--no-color").color is False


def test_the_output_of_a_script_does_not_depend_on_the_file(tmp_path: Path) -> None:
    assert options(tmp_path, WHOLE, terminal=False) == Options(home="/ggs")


def test_without_a_file_nothing_changes(tmp_path: Path) -> None:
    assert parse_options([], {"XDG_CONFIG_HOME": str(tmp_path)}, terminal=True) == Options()
    assert parse_options([], {}, terminal=True) == Options()


def test_the_file_is_below_the_users_home_unless_xdg_says_otherwise() -> None:
    assert config_file({"HOME": "/u"}) == Path("/u/.config/ggshell/config.toml")
    assert config_file({"HOME": "/u", "XDG_CONFIG_HOME": "/x"}) == Path("/x/ggshell/config.toml")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("timing = true\nformat = table", 2, "not valid TOML"),
        ("format = [", 1, "not valid TOML"),
        ('\nformat = "xml"', 2, "xml is not a valid value of format"),
        ('timing = "on"', 1, "on is not a valid value of timing"),
        ("# mine\n\nhome = 3", 3, "3 is not a valid value of home"),
        ('home = "~nosuchuser/x"', 1, "~nosuchuser/x is not a valid value of home"),
        ('home = "here"', 1, "here is not a valid value of home"),
        ("timing = true\ncolour = true", 2, "colour is not a valid setting"),
        ("[format]\nname = 1", 1, "is not a valid value of format"),
    ],
)
def test_an_invalid_file_is_reported_with_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(tmp_path, text)
    assert message in caught.value.message
    assert caught.value.where == f"{tmp_path / 'ggshell' / 'config.toml'}:{line}"


@pytest.mark.slow
def test_an_invalid_file_stops_ggshell_with_one_line_but_not_the_help(tmp_path: Path) -> None:
    file = tmp_path / "ggshell" / "config.toml"
    file.parent.mkdir()
    file.write_text("timing = 1\n")
    run = [sys.executable, "-m", "ggshell.cli.main"]
    done = subprocess.run(
        [*run, "-c", "VERSIONS"], env={"XDG_CONFIG_HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ggshell: 1 is not a valid value of timing ({file}:1) - use true or false\n"
    helped = subprocess.run([*run, "--help"], env={"XDG_CONFIG_HOME": str(tmp_path)}, capture_output=True, check=False)
    assert helped.returncode == 0


def test_the_home_applies_to_every_subcommand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    options(tmp_path, f'home = "{home}"')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GGSHELL_HOME", raising=False)
    assert main(["demo", "down"]) == 0
    assert f"there is no demo in {home}" in capsys.readouterr().out
    main(["demo", "--home", str(tmp_path / "b"), "down"])
    assert f"there is no demo in {tmp_path / 'b'}" in capsys.readouterr().out
    monkeypatch.setenv("GGSHELL_HOME", str(tmp_path / "b"))
    main(["demo", "down"])
    assert f"there is no demo in {tmp_path / 'b'}" in capsys.readouterr().out
