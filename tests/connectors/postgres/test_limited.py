"""Connections whose statements have a time limit."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from processes import until

from ggshell.clock import SystemClock
from ggshell.connectors.postgres.limited import LimitedConnection
from ggshell.connectors.postgres.lock_waits import watched
from ggshell.connectors.postgres.session import connect, connect_limited, execute, transaction
from ggshell.errors import ConnectionLostError
from ggshell.time_limit import RETRY_SECONDS, TimeLimit


@contextmanager
def stopped(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """The server's process of a connection does not answer."""
    pid = connection.info.backend_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def limited(dsn: str, silence: float = math.inf, seconds: float = math.inf) -> tuple[LimitedConnection, TimeLimit]:
    limit = TimeLimit(SystemClock(), silence, seconds)
    return connect_limited(dsn, limit), limit


def test_a_silent_server_ends_the_statement_and_its_transaction(north: str) -> None:
    connection, limit = limited(north, silence=1)
    with pytest.raises(ConnectionLostError, match="did not answer within 1 seconds"), transaction(connection):
        assert execute(connection, "SELECT 1") == [(1,)]
        with stopped(connection):
            execute(connection, "SELECT 2")
    assert connection.closed
    assert limit.left(60) == min(RETRY_SECONDS, 1)


def test_a_server_that_sends_rows_is_not_silent(north: str) -> None:
    connection, _ = limited(north, silence=0.5)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.2), repeat('x', 100000) FROM generate_series(1, 5)")
        assert len(cursor.fetchall()) == 5


def test_a_request_has_no_statement_after_its_end(north: str) -> None:
    connection, limit = limited(north)
    timer = threading.Timer(0.3, limit.end)
    timer.start()
    with pytest.raises(ConnectionLostError, match="canceled because its client disconnected"):
        execute(connection, "SELECT pg_sleep(60)")
    with connect(north) as other:
        running = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(60%' AND state = 'active'"
        until("the server to cancel it", lambda: not execute(other, running), 10)
    with pytest.raises(ConnectionLostError, match="time limit"):
        limited(north, seconds=0)


def test_the_creation_of_a_slot_has_the_limit_too(north: str) -> None:
    connection, _ = limited(north, silence=1)
    with stopped(connection), pytest.raises(ConnectionLostError, match="did not answer"):
        watched(connection, "SELECT 1", lambda _: None)
    assert connection.closed


def test_a_slot_waits_for_other_transactions_without_a_limit(north: str) -> None:
    connection, _ = limited(north, silence=1)
    seen = 0

    def waiting(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:
            other.rollback()

    with closing(connection), psycopg.connect(north) as other:
        other.execute("CREATE TABLE held (a int)")
        statement = "SELECT pg_create_logical_replication_slot('limited', 'pgoutput')::text"
        assert "limited" in watched(connection, statement, waiting)
        execute(connection, "SELECT pg_drop_replication_slot('limited')")
    assert seen >= 3


def test_the_settings_of_a_login_replace_those_of_connections(north: str) -> None:
    with connect_limited(f"{north} keepalives_idle=7", None) as connection:
        given = psycopg.conninfo.conninfo_to_dict(connection.info.dsn)
    assert (given["keepalives_idle"], given["keepalives_interval"], given["tcp_user_timeout"]) == ("7", "10", "60000")
    with connect(north) as connection:
        assert "tcp_user_timeout" not in psycopg.conninfo.conninfo_to_dict(connection.info.dsn)
