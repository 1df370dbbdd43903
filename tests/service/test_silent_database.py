"""A database that does not answer: other requests, commands on groups and the end of the service do not wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import psycopg
import pytest
from processes import until
from service_client import RunningService, ServiceClient

from ggshell.service.state import MOST_LOGINS, WORKERS

pytestmark = pytest.mark.slow
PROMPT_SECONDS = 10.0
"""Far below the deadline of a request (25 s), which is how long an answer took when it had to wait for a hung one."""
REPORT = {"name": "report", "reportType": "schemas", "credentials": {"domain": "Away", "alias": "silent"}}


@pytest.fixture
def silent(tmp_path: Path, north: str) -> Iterator[RunningService]:
    """A service with a connection whose database lets a client log in and then waits for a lock."""
    running = RunningService(tmp_path)
    login = {"userid": north, "password": "x"}
    assert running.client().post("/credentials/Away/silent", login).status == 201
    with psycopg.connect(north) as holder:
        holder.execute("LOCK TABLE pg_namespace IN ACCESS EXCLUSIVE MODE")
        yield running
        holder.rollback()
    running.close()


def status(client: ServiceClient) -> int:
    try:
        return client.post("/commands/execute", REPORT).status
    except OSError:
        return 0


def test_the_other_requests_are_answered(silent: RunningService, north: str) -> None:
    with ThreadPoolExecutor(WORKERS + 4) as clients:
        clients_of_it = [silent.client() for _ in range(WORKERS + 4)]
        pending = [clients.submit(status, each) for each in clients_of_it]
        until("all places are taken", lambda: sum(each.done() for each in pending) == WORKERS + 4 - MOST_LOGINS)
        assert {each.result() for each in pending if each.done()} == {503}
        begun = monotonic()
        assert [silent.client().get(path).status for path in ("/currentuser", "/extracts")] == [200, 200]
        assert silent.client().get("//metrics").status == 200
        start = {"name": "start", "processName": "NONE1", "processType": "extract"}
        assert silent.client().post("/commands/execute", start).status == 404
        assert monotonic() - begun < PROMPT_SECONDS
        begun = monotonic()
        silent.run("STOP SERVICE")
        assert monotonic() - begun < 2 * PROMPT_SECONDS
        silent.run("START SERVICE")
        assert silent.client().get("/currentuser").status == 200
