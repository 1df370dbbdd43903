"""``ggshell demo``: up, status, load and down, and their output."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.demo.cli import main
from ggshell.demo.servers import open_servers
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home

pytestmark = [pytest.mark.pg, pytest.mark.slow]


def test_up_load_status_and_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path)]
    assert main(["up", *home]) == 0
    try:
        assert main(["up", *home]) == 0  # again: nothing is lost, and no error occurs
        assert "USERIDALIAS south" in capsys.readouterr().out
        assert {entry.alias for entry in CredentialStore(Home(tmp_path)).entries()} == {"north", "south"}

        assert main([*home, "load", "--rate", "0", "--seconds", "0.3"]) == 0
        assert "transactions committed" in capsys.readouterr().out

        assert main(["status", *home]) == 0
        shown = capsys.readouterr().out
        assert "north: running" in shown
        assert "schema shop" in shown

        assert main(["down", *home]) == 0
        assert f"is kept in {open_servers(tmp_path).north.data.parent} for" in capsys.readouterr().out
        assert main(["status", *home]) == 0
        assert "south: stopped" in capsys.readouterr().out
        assert main(["load", *home]) == 1
        assert "demo up" in capsys.readouterr().err
    finally:
        open_servers(tmp_path).remove()


def test_without_a_demo_the_command_that_creates_one_is_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--home", str(tmp_path)]) == 1
    assert "ggshell demo up" in capsys.readouterr().err
    assert main(["down", "--home", str(tmp_path)]) == 0


def test_an_unknown_action_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sideways"])
    assert ended.value.code == 2
