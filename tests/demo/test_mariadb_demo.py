"""``ggshell demo up --kind mariadb``: up, status and down."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.demo import mariadb_demo
from ggshell.demo.cli import main
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home


def test_the_mariadb_server_comes_up_and_goes_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mariadb_binaries: Path
) -> None:
    home = ["--home", str(tmp_path)]
    try:
        for _ in range(2):  # again: nothing is lost, and no error occurs
            assert main(["up", "--kind", "mariadb", *home]) == 0
        assert "USERIDALIAS maria" in capsys.readouterr().out
        assert {entry.alias for entry in CredentialStore(Home(tmp_path)).entries()} == {"maria"}
        assert main(["status", *home]) == 0
        assert "customers 1,000 rows, orders 3,000 rows" in capsys.readouterr().out
        assert main(["down", *home]) == 0
        assert main(["status", *home]) == 0
        assert "maria: stopped" in capsys.readouterr().out
    finally:
        mariadb_demo.open_demo(tmp_path).remove()
    assert not mariadb_demo.exists(tmp_path)


def test_without_mariadb_the_package_to_install_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ggshell.demo.mariadb_server.USUAL_PLACE", tmp_path / "mariadbd")
    monkeypatch.delenv("GGSHELL_MARIADB_BIN", raising=False)
    assert main(["up", "--kind", "mariadb", "--home", str(tmp_path)]) == 1
    assert "install Debian's package mariadb-server" in capsys.readouterr().err
