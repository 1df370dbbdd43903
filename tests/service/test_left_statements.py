"""Statements of shells whose client goes away, and more statements than there are threads."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
from processes import until
from service_client import Reply, ServiceClient, service_here

from ggshell.service import state as service_state
from ggshell.service.state import WORKERS, ServiceState

pytestmark = pytest.mark.slow
PATH = "/ggshell/statements"
Service = tuple[str, ServiceState]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service in this process that lets a request take two seconds."""
    with service_here(tmp_path, 2.0) as found:
        yield found


@contextmanager
def locked(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Statements that list tables wait until the block ends."""
    with psycopg.connect(dsn) as holder:
        holder.execute("LOCK TABLE pg_namespace IN ACCESS EXCLUSIVE MODE")
        yield holder
        holder.rollback()


def waiting(holder: psycopg.Connection[Any]) -> int:
    rows = holder.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pg_namespace'::regclass")
    return int(rows.fetchall()[0][0])


def shell(service: Service, dsn: str) -> ServiceClient:
    """A client with a shell of its own that is logged in to a database."""
    client = ServiceClient(service[0])
    assert client.post("/ggshell/sessions").status == 201
    client.session.auth = None
    login = {"statement": f'DBLOGIN USERID "{dsn}"'}
    reply = client.post(PATH, login)
    assert reply.response["status"] == "ok", reply.text
    return client


def info(client: ServiceClient) -> Reply:
    return client.post(PATH, {"statement": "INFO TRANDATA *.*"})


def test_a_statement_ends_when_its_client_closes_the_connection(service: Service, north: str) -> None:
    url, state = service
    client = shell(service, north)
    with locked(north) as holder:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        headers = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in client.session.cookies)}
        connection.request(
            "POST", f"/services/v2{PATH}", json.dumps({"statement": "INFO TRANDATA *.*"}), headers=headers
        )
        until("the statement to run", lambda: waiting(holder) == 1)
        connection.close()
        until("the statement to end in the database", lambda: waiting(holder) == 0, 10)
        until("its thread to be free", lambda: state.free_statements == WORKERS)
    assert info(client).status == 200


def test_a_statement_ends_when_its_client_does_not_ask_for_its_outcome(
    service: Service, north: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_state, "ABANDONED_SECONDS", 1.5)
    client = shell(service, north)
    with locked(north) as holder:
        reply = info(client)
        assert reply.status == 202
        name, begun = reply.response["name"], monotonic()
        while monotonic() - begun < 2.5:
            assert client.get(f"{PATH}/{name}").status == 202
        until("the statement to end in the database", lambda: waiting(holder) == 0, 10)
    until("its thread to be free", lambda: service[1].free_statements == WORKERS)
    assert client.get(f"{PATH}/{name}").response["status"] == "error"
    assert info(client).status == 200


def test_a_request_that_does_not_end_before_the_service_is_answered(tmp_path: Path) -> None:
    """Regression: the answer was 500 without the envelope, and a traceback in SERVICE.out."""
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as pool:
        statement = f"DBLOGIN USERID u@127.0.0.1:{silent.getsockname()[1]}/d, PASSWORD x"
        with service_here(tmp_path, 60.0) as (url, state):
            sent = pool.submit(ServiceClient(url).post, "/ggshell/statements", {"statement": statement})
            until("the statement is carried out", lambda: state.free_statements < WORKERS)
        reply = sent.result(60)
    assert (reply.status, "retry-after" in reply.headers) == (503, True), reply.text
    assert "being stopped" in reply.body["messages"][0]["title"]


def test_more_statements_than_threads_are_refused(service: Service, north: str) -> None:
    clients = [shell(service, north) for _ in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool, locked(north) as holder:
        pending = [pool.submit(info, each) for each in clients]
        until("all to wait", lambda: waiting(holder) == WORKERS)
        begun = monotonic()
        reply = ServiceClient(service[0]).post(PATH, {"statement": "INFO ALL"})
        assert (reply.status, reply.headers.get("retry-after"), monotonic() - begun < 2) == (503, "5", True)
        assert {each.result().status for each in pending} == {202}
    until("the threads to be free", lambda: service[1].free_statements == WORKERS)
    assert ServiceClient(service[0]).post(PATH, {"statement": "INFO ALL"}).status == 200
