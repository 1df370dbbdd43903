"""Stored logins for CONNECT."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run_ggshell

from ggshell.client.credentials import StoredLogin, StoredLogins
from ggshell.errors import ConflictError, NotFoundError, UsageError

SECRET = "hunter2secret"


def test_a_login_is_encrypted_and_found_again(tmp_path: Path) -> None:
    stored = StoredLogins(tmp_path)
    stored.add(StoredLogin("prod", "admin", SECRET))
    stored.add(StoredLogin("ci", token=SECRET))
    assert StoredLogins(tmp_path).find("prod") == ("prod", "admin", SECRET, "")
    assert [each.name for each in stored.matching("*")] == ["ci", "prod"]
    for path in tmp_path.iterdir():
        assert SECRET.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0 or path.name.endswith(".lock")


def test_names_are_unique_and_must_exist(tmp_path: Path) -> None:
    stored = StoredLogins(tmp_path)
    stored.add(StoredLogin("prod", "admin", SECRET))
    with pytest.raises(ConflictError, match="already exist"):
        stored.add(StoredLogin("prod", "admin", SECRET))
    stored.delete("prod")
    for action in (lambda: stored.delete("prod"), lambda: stored.matching("prod")):
        with pytest.raises(NotFoundError, match="do not exist"):
            action()
    with pytest.raises(UsageError):
        stored.add(StoredLogin("a*", "admin", SECRET))


@pytest.mark.slow
def test_the_statements_use_no_home_and_show_no_secret(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = run_ggshell(
        "--home",
        home,
        "-c",
        f"ADD CREDENTIALS prod USER admin PASSWORD {SECRET}; ADD CREDENTIALS ci TOKEN {SECRET}; INFO CREDENTIALS; HISTORY",
        **folder,
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "prod                    admin                   password" in done.stdout
    assert "ci                                              token" in done.stdout
    assert not home.exists()
    done = run_ggshell("--home", home, "-c", "DELETE CREDENTIALS ci; INFO CREDENTIALS ci", **folder)
    assert (done.returncode, "do not exist" in done.stderr) == (1, True)
    refused = run_ggshell("--home", home, "-c", "ADD CREDENTIALS b USER admin", **folder)
    assert "a password is required for admin" in refused.stderr
