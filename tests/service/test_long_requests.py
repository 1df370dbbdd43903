"""Requests that continue in the background: their progress and their results."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ggshell.clock import FakeClock
from ggshell.errors import ConnectionLostError, NotFoundError, StateError
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service import routes
from ggshell.service.answers import Answer, RawAnswer, Said
from ggshell.service.call import Call, Request
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState

Running = Future[Answer | RawAnswer]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServiceState]:
    found = ServiceState(Home(tmp_path), ServiceParameters(), FakeClock())
    yield found
    found.close()


def get(state: ServiceState, path: str, user: str = "uma", role: Role = Role.USER, identity: str = "") -> Any:
    """Handle a GET as the application does after signing in; return the response."""
    route, values = routes.find("GET", path)
    request = Request("GET", path, "http://h/services/v2", {}, {}, None, False, "h")
    answer = routes.handle(route, Call(state, request, Principal(user, role, "", identity)), values)
    assert isinstance(answer, Answer)
    return msgspec.to_builtins(answer.response)


def test_the_result_of_a_request_is_that_of_its_handler(state: ServiceState) -> None:
    future: Running = Future()
    state.follow(Principal("uma", Role.USER), "DELETE", "http://h/services/v2/extracts/EXT1", future)
    assert get(state, "/requests/1")["progress"] == "processing"
    with pytest.raises(StateError):
        get(state, "/requests/1/result")
    future.set_result(Answer({"name": "EXT1"}, (Said("OGG-08100", "EXTRACT EXT1 deleted."),), 201))
    shown = get(state, "/requests/1")
    assert (shown["completed"], shown["progress"], shown["requestStatus"]) == (True, "succeeded", 201)
    result = get(state, "/requests/1/result")
    assert result["status"] == {"code": 201, "reason": "Created"}
    assert result["body"]["response"] == {"name": "EXT1"}
    assert result["body"]["messages"][0]["code"] == "OGG-08100"


def test_a_request_that_failed_has_the_status_of_its_error(state: ServiceState) -> None:
    future: Running = Future()
    state.follow(Principal("uma", Role.USER), "POST", "http://h/services/v2/extracts/EXT1", future)
    future.set_exception(ConnectionLostError("the server closed the connection, password=secret"))
    assert get(state, "/requests/1")["progress"] == "failed"
    result = get(state, "/requests/1/result")
    assert (result["status"]["code"], result["body"]["messages"][0]["severity"]) == (503, "ERROR")
    assert "secret" not in str(result)


def test_a_user_sees_only_the_own_requests(state: ServiceState) -> None:
    state.follow(Principal("jane", Role.ADMINISTRATOR), "POST", "http://h/services/v2/extracts/EXT1", Future())
    with pytest.raises(NotFoundError):
        get(state, "/requests/1")
    assert get(state, "/requests/1", "admin", Role.SECURITY)["completed"] is False
    assert [each["name"] for each in get(state, "/requests", "admin", Role.SECURITY)["items"]] == ["1"]
    with pytest.raises(NotFoundError):
        get(state, "/requests/2")


def test_a_user_who_was_added_again_does_not_see_the_requests_of_the_former_one(state: ServiceState) -> None:
    state.follow(Principal("uma", Role.USER, "", "first"), "POST", "http://h/services/v2/extracts/EXT1", Future())
    with pytest.raises(NotFoundError):
        get(state, "/requests/1", identity="second")
    assert get(state, "/requests/1", identity="first")["completed"] is False
