"""Ctrl-C cancels a statement, also one that waits in the database; the shell and its login go on."""

from __future__ import annotations

import os
import signal
import threading

import psycopg
import pytest
from processes import until
from shell.ground import Shell

from ggshell.shell.conversation import Conversation
from ggshell.shell.options import Options
from ggshell.shell.session import Session

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_statement_that_waits_for_a_lock(
    shell: Shell, north: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session(Options(home=str(shell.home.root), color=False))
    session.interactive = True
    typed = iter(
        [
            f"dblogin userid '{north}' password none",
            "add trandata public.kept",
            "add checkpointtable public.ck",
            "info checkpointtable public.ck",
            "exit",
        ]
    )
    with psycopg.connect(north, autocommit=True) as other, psycopg.connect(north) as holder:
        other.execute("CREATE TABLE kept (id int PRIMARY KEY)")
        holder.execute("LOCK TABLE kept IN ACCESS EXCLUSIVE MODE")

        def interrupt() -> None:
            until("the statement waits", lambda: bool(other.execute(WAITING).fetchall()[0][0]))
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        assert Conversation(session, lambda _: next(typed, None)).run() == 0
        thread.join()
        assert other.execute(WAITING).fetchall() == [(0,)]
    out = capsys.readouterr().out
    assert out.index("Interrupted.") < out.index("Successfully created checkpoint table public.ck.")
    assert "Checkpoint table public.ck exists." in out
    session.close()


def test_ctrl_c_ends_a_batch(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Session) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "connection", interrupted)
    answer = shell.batch("INFO TRANDATA a.b", "INFO ALL")
    assert (answer.code, answer.out) == (130, "")
    assert "interrupted" in answer.err
