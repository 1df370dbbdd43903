"""Errors that only a mistake can raise, and the locks of objects, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from ggshell.clock import FakeClock
from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.app import Application
from ggshell.service.state import ServiceState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServiceState]:
    home = Home(tmp_path)
    home.ensure()
    found = ServiceState(home, ServiceParameters(), FakeClock())
    yield found
    found.close()


def asked(application: Application, path: str = "/services/v2/extracts") -> tuple[int, bytes]:
    """Ask an application for a resource; returns the status and the body of its answer."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event: Any) -> None:
        sent.append(event)

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"h")],
        "client": ("127.0.0.1", 1),
        "server": ("h", 80),
    }
    asyncio.run(application(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


def test_an_unexpected_error_is_answered_with_the_envelope(state: ServiceState) -> None:
    def failing(_: tuple[str, int]) -> str:
        return str(1 // 0)

    status, body = asked(Application(state, failing))
    answer = msgspec.json.decode(body)
    assert (status, [each["code"] for each in answer["messages"]]) == (500, ["GGS-00999"])
    assert "ZeroDivisionError" in answer["messages"][0]["title"]
    assert "GGS-00999" in (state.home.root / "ggserr.log").read_text()


def test_a_lock_is_kept_only_while_a_request_holds_it_or_waits(state: ServiceState) -> None:
    held, done = Event(), Event()

    def hold() -> None:
        with state.locks.held(["extracts E1"], 5):
            held.set()
            done.wait(20)

    holder = Thread(target=hold)
    holder.start()
    assert held.wait(20)
    with (
        pytest.raises(HttpError, match="another request is changing extracts E1"),
        state.locks.held(["extracts E1"], 0),
    ):
        pass
    assert state.locks.names == ["extracts E1"]
    done.set()
    holder.join(20)
    assert not state.locks.names
    with state.locks.held(["extracts E1"], 0):
        pass
    assert not state.locks.names
