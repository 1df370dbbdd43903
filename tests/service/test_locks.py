"""What one request at a time changes: the same names for all requests, and requests that wait need no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interrupted_requests import carry_out
from processes import until
from service_client import ServiceClient, initial_load, service_here

from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.service import routes
from ggshell.service.app import decode_body
from ggshell.service.locks import Locks
from ggshell.service.state import WORKERS, ServiceState

REPLICAT = {"source": {"name": "ea"}, "checkpoint": {"table": "ggadmin.ckpt"}}
Service = tuple[str, ServiceState]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service in this process that lets a request take three seconds, and some groups."""
    with service_here(tmp_path, 3.0) as (url, state):
        groups = {
            "extracts/EXT1": initial_load("EXT1"),
            "extracts/EXT2": initial_load("EXT2"),
            "replicats/EXTRA": REPLICAT,
        }
        for path, body in groups.items():
            carry_out(state, "POST", f"/{path}", body)  # without the limit of a request
        yield url, state


def changed(home: Home, name: str, kind: str = "extract", command: str = "start") -> tuple[str, ...]:
    route = routes.find("POST", "/commands/execute")[0]
    body = decode_body(route, f'{{"name": "{command}", "processName": "{name}", "processType": "{kind}"}}'.encode())
    return routes.changed_objects(route, (), body, home)


@pytest.mark.slow
def test_a_command_locks_the_groups_that_its_name_matches(service: Service) -> None:
    home = service[1].home
    both = ("extracts EXT1", "extracts EXT2")
    assert changed(home, "EXT*") == changed(home, "ext?") == both
    assert changed(home, "ext1") == changed(home, "EXT1") == ("extracts EXT1",)
    assert changed(home, "ext*", "ER") == (*both, "replicats EXTRA")
    assert changed(home, "none") == ()
    route, values = routes.find("PATCH", "/extracts/ext1")
    assert routes.changed_objects(route, values, None, home) == ("extracts EXT1",)


@pytest.mark.slow
def test_changes_that_wait_for_one_object_leave_the_others_alone(service: Service) -> None:
    url, state = service
    stop = {"name": "stop", "processName": "ext*", "processType": "extract"}
    with ThreadPoolExecutor(2 * WORKERS) as clients, state.locks.held(["extracts EXT1"], 0):
        pending = [clients.submit(ServiceClient(url).post, "/commands/execute", stop) for _ in range(2 * WORKERS)]
        until("all to wait", lambda: state.locks.waiting("extracts EXT1") == 2 * WORKERS)
        assert ServiceClient(url).patch("/extracts/EXT2", {"description": "other"}).status == 200
        replies = [each.result() for each in pending]
    assert {(each.status, each.headers.get("retry-after")) for each in replies} == {(409, "5")}
    assert "is changing extracts EXT1" in replies[0].text
    assert ServiceClient(url).patch("/extracts/EXT1", {"description": "mine"}).status == 200
    assert not state.locks.names


def test_requests_have_the_lock_in_the_order_of_their_arrival() -> None:
    locks, order = Locks(), []

    async def change(number: int) -> None:
        release = await locks.take(["b", "a"], 10)
        order.append(number)
        release()

    async def run() -> None:
        release = await locks.take(["a"], 10)
        waiting = [asyncio.create_task(change(number)) for number in range(5)]
        await asyncio.sleep(0)
        waiting[2].cancel()
        release()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())
    assert (order, locks.names) == ([0, 1, 3, 4], [])


def test_a_lock_that_stays_taken_is_refused() -> None:
    locks = Locks()
    with locks.held(["a"], 0):
        with pytest.raises(HttpError) as refused:
            asyncio.run(locks.take(["b", "a"], 0.01))
        assert (refused.value.status, refused.value.headers) == (409, {"Retry-After": "5"})
        assert locks.names == ["a"]
    assert not locks.names
