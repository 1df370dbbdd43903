"""A database that becomes silent after the login: requests are refused in time, and their threads are free again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
from black_hole import BlackHole
from processes import until
from service_client import Reply, ServiceClient, service_here

from ggshell.service.state import MOST_LOGINS, ServiceState

pytestmark = pytest.mark.slow
DEADLINE, SILENCE = 12.0, 3.0
REPORT = {"name": "report", "reportType": "tables", "credentials": {"domain": "Away", "alias": "silent"}}
HEARTBEAT = "/connections/Away.silent/tables/heartbeat"
Service = tuple[str, ServiceState]


def through(dsn: str, port: int) -> str:
    """The login that reaches the server of a DSN through a port."""
    found = psycopg.conninfo.conninfo_to_dict(dsn)
    return psycopg.conninfo.make_conninfo("", **{**found, "host": "127.0.0.1", "port": port})


@pytest.fixture
def network(north: str) -> Iterator[BlackHole]:
    found = BlackHole(int(psycopg.conninfo.conninfo_to_dict(north)["port"]))
    yield found
    found.close()


@contextmanager
def service(root: Path, login: str) -> Iterator[Service]:
    with service_here(root, DEADLINE, SILENCE) as (url, state):
        added = ServiceClient(url).post("/credentials/Away/silent", {"userid": login, "password": "x"})
        assert added.status == 201, added.text
        yield url, state


def prompt(send: Callable[[], Reply]) -> Reply:
    """Send a request; the answer must be there before the deadline."""
    begun = monotonic()
    reply = send()
    assert monotonic() - begun < DEADLINE
    return reply


def read(url: str) -> Reply:
    return ServiceClient(url).post("/commands/execute", REPORT)


def change(url: str) -> Reply:
    return ServiceClient(url).post(HEARTBEAT)


def waiting(holder: psycopg.Connection[Any]) -> list[int]:
    """The server's processes that wait for a lock of the holder."""
    rows = holder.execute("SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'pg_namespace'::regclass")
    return [pid for (pid,) in rows.fetchall()]


def refused(north: str, url: str, send: Callable[[str], Reply], silence: Callable[[list[int]], None]) -> None:
    """Fill all places with requests, make the database silent while it carries them out, and check their answers.

    ``silence`` receives the server's processes. They are ready to answer afterwards, but nothing arrives.
    """
    with ThreadPoolExecutor(MOST_LOGINS) as clients, psycopg.connect(north) as holder:
        holder.execute("LOCK TABLE pg_namespace IN ACCESS EXCLUSIVE MODE")
        pending = [clients.submit(prompt, lambda: send(url)) for _ in range(MOST_LOGINS)]
        until("the statements to run", lambda: len(waiting(holder)) == MOST_LOGINS)
        assert ServiceClient(url).get("/extracts").status == 200
        silence(waiting(holder))
        holder.rollback()
        replies = [each.result() for each in pending]
    assert [(each.status, each.headers.get("retry-after")) for each in replies] == [(503, "5")] * MOST_LOGINS
    assert "did not answer within" in replies[0].text


def require_free(url: str, state: ServiceState, send: Callable[[str], Reply], status: int) -> None:
    """All places are free, and requests of all of them succeed at the same time."""
    until("the places to be free", lambda: state.free_logins == MOST_LOGINS)
    with ThreadPoolExecutor(MOST_LOGINS) as clients:
        assert [each.status for each in clients.map(lambda _: send(url), range(MOST_LOGINS))] == [status] * MOST_LOGINS


def test_a_network_that_loses_everything_after_the_login(tmp_path: Path, north: str, network: BlackHole) -> None:
    with service(tmp_path, through(north, network.port)) as (url, state):
        assert read(url).status == 200
        refused(north, url, read, lambda _: network.swallow())
        assert prompt(lambda: read(url)).status == 503
        network.pass_on()
        require_free(url, state, read, 200)


def test_server_processes_that_are_stopped(tmp_path: Path, north: str) -> None:
    stopped: list[int] = []

    def stop(pids: list[int]) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        stopped.extend(pids)

    with service(tmp_path, north) as (url, state):
        try:
            refused(north, url, read, stop)
            require_free(url, state, read, 200)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        require_free(url, state, read, 200)


def test_a_change_whose_database_is_silent(tmp_path: Path, north: str, network: BlackHole) -> None:
    with service(tmp_path, through(north, network.port)) as (url, state), psycopg.connect(north) as holder:
        holder.execute("LOCK TABLE pg_namespace IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(1) as clients:
            pending = clients.submit(prompt, lambda: change(url))
            until("the statement to run", lambda: len(waiting(holder)) == 1)
            network.swallow()
            holder.rollback()
            reply = pending.result()
        assert (reply.status, reply.headers.get("retry-after")) == (503, "5")
        network.pass_on()
        until("the place to be free", lambda: state.free_logins == MOST_LOGINS)
        assert prompt(lambda: change(url)).status == 201
