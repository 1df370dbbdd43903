"""The status bar: login, states and the worst lag, computed in the background."""

from __future__ import annotations

import threading

import pytest
from cli.shell import Shell, log_extract, replicat

from ggshell.cli import status_bar as module
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.cli.status_bar import Watcher, overview
from ggshell.clock import SystemClock
from ggshell.connectors.logged_in import LoggedIn
from ggshell.connectors.registry import connector_for

HOUR = 3_600_000_000


def session_of(shell: Shell) -> Session:
    return Session(Options(home=str(shell.home.root)))


def test_the_status_bar_of_an_empty_home(shell: Shell) -> None:
    assert overview(session_of(shell)) == "not logged in  |  no groups"


def test_the_status_bar_shows_counts_login_and_the_worst_lag(shell: Shell) -> None:
    then = SystemClock().now() - 2 * HOUR
    shell.save(log_extract("EXT1", record_time=then, caught_up=then, updated=then))
    shell.save(log_extract("EXT2", begin_time=SystemClock().now()))
    session = session_of(shell)
    session.login = LoggedIn(connector_for(""), "password=x", "u", "d")
    text = overview(session)
    assert text.startswith("u@d  |  2 stopped  |  worst lag 02:00:0")
    assert text.endswith(" EXT1")


def test_groups_that_cannot_be_read_are_named(shell: Shell) -> None:
    shell.save(log_extract("EXT1"))
    shell.save(replicat("REP1"))
    (shell.home.root / "dirdat" / "ea000000000").write_bytes(b"no trail" * 100)
    (shell.home.root / "dirchk" / "BAD.cpe").write_text("nothing")
    assert overview(session_of(shell)).endswith("unclear: BAD, REP1")


def test_the_watcher_updates_on_request(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed = threading.Semaphore(0)
    texts = iter(["first", "second", "third", "fourth"])

    def refresh(_: Session) -> str:
        refreshed.release()
        return next(texts)

    monkeypatch.setattr(module, "overview", refresh)
    monkeypatch.setattr(module, "EVERY_SECONDS", 60.0)
    watcher = Watcher(session_of(shell))
    assert refreshed.acquire(timeout=10)
    watcher.refresh()
    assert refreshed.acquire(timeout=10)
    watcher.close()
    assert watcher.text() in ("second", "third")
