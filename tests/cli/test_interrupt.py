"""Ctrl-C cancels a statement, even one that waits in the database; the shell and its login stay."""

from __future__ import annotations

import os
import signal
import threading

import psycopg
import pytest
from cli.shell import Shell
from processes import until

from ggshell.cli.conversation import Conversation
from ggshell.cli.options import Options
from ggshell.cli.session import Session

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_cancels_a_statement_that_waits_for_a_lock(
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
    assert "Checkpoint table public.ck created 2" in out
    session.close()


@pytest.mark.usefixtures("ctrl_c")
def test_register_reports_the_transactions_it_waits_for_and_ctrl_c_leaves_no_slot(
    shell: Shell, north: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggshell.connectors.postgres.lock_waits.CHECK_SECONDS", 0.05)
    session = Session(Options(home=str(shell.home.root), color=False))
    session.interactive = True
    register = "register extract ext1"
    typed = iter([f"dblogin userid '{north}' password none", register, register, "exit"])
    log = shell.home.event_log

    def reports() -> int:
        return log.read_text().count("VALUES (4711)") if log.exists() else 0

    with psycopg.connect(north, autocommit=True) as other, psycopg.connect(north) as writer:
        other.execute("CREATE TABLE kept (id int PRIMARY KEY)")
        writer.execute("INSERT INTO kept VALUES (4711)")
        pid = writer.info.backend_pid

        def interrupt() -> None:
            until("the wait is reported", lambda: reports() == 1)
            os.kill(os.getpid(), signal.SIGINT)
            until("the second wait is reported", lambda: reports() == 2)
            writer.commit()

        thread = threading.Thread(target=interrupt)
        thread.start()
        assert Conversation(session, lambda _: next(typed, None)).run() == 0
        thread.join()
        slots = other.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        ).fetchall()
    found = capsys.readouterr()
    assert slots == [("ggs_ext1",)]
    assert f"pid {pid}, user postgres" in found.err
    assert "last statement: INSERT INTO kept VALUES (4711)" in found.err
    assert found.out.index("Interrupted.") < found.out.index("OGG-25355")
    assert (
        "OGG-25355  Successfully created replication slot 'ggs_ext1' for Extract group 'EXT1' in database" in found.out
    )
    session.close()


def test_ctrl_c_stops_a_batch(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Session) -> None:
        raise KeyboardInterrupt

    shell.home.ensure()
    monkeypatch.setattr(Session, "logged_in", interrupted)
    answer = shell.batch("INFO TRANDATA a.b", "INFO ALL")
    assert (answer.code, answer.out) == (130, "")
    assert "interrupted" in answer.err
