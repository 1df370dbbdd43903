"""Every route declares its response, and the services of the tests check each answer against the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from service_client import RunningService

from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.home.process_file import state_of
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service import routes
from ggshell.service.answer_check import VARIABLE, check_answer
from ggshell.service.answers import Answer, Object, envelope
from ggshell.service.app import Application
from ggshell.service.measuring_points import MeasuringPoint
from ggshell.service.openapi import document
from ggshell.service.resources.mpoints import KINDS
from ggshell.service.responses import LongRequest
from ggshell.service.state import ServiceState

OF_ANY_FORM = {
    "/config/types/{type}": "a client's JSON schema",
    "/config/types/{type}/values/{value}": "a client's document",
}


def test_every_read_declares_its_response() -> None:
    found = [
        route.path
        for route in routes.routes()
        if route.method == "GET" and route.returns is None and not route.raw and route.summary != "Not supported"
    ]
    assert found == []


def test_few_responses_have_any_form() -> None:
    def plain(declared: Any) -> Any:
        return getattr(declared, "__origin__", declared)

    found = [route.path for route in routes.routes() if plain(route.returns) in (Any, dict, Object, dict[str, Any])]
    assert found == list(OF_ANY_FORM)


def test_each_measuring_point_has_its_type() -> None:
    types = {each.__struct_config__.tag for each in get_args(MeasuringPoint)}
    assert types == {f"mpoints:{kind}" for kind in KINDS}


def test_the_document_describes_the_response_of_a_route() -> None:
    content = document()["paths"]["/extracts/{extract}"]["get"]["responses"]["200"]["content"]
    part = content["application/json"]["schema"]["allOf"][1]
    assert part == {"properties": {"response": {"$ref": "#/components/schemas/Extract"}}, "required": ["response"]}
    fields = document()["components"]["schemas"]["Extract"]
    assert {"begin", "status", "targets"} <= set(fields["required"])
    assert fields["additionalProperties"] is False


def answer(response: Any) -> bytes:
    return msgspec.json.encode(envelope("http://h/services/v2/x", "http://h/services/v2", (), 0, response))


STATUS = {"$schema": "ogg:tablesCheckpoint", "name": "a.b", "groups": []}
LIST = {"$schema": "ogg:collection", "items": []}


@pytest.mark.parametrize(
    ("method", "path", "status", "response"),
    [
        ("GET", "/extracts", 200, LIST),
        ("DELETE", "/extracts/E1", 200, None),
        ("DELETE", "/extracts/E1", 202, LongRequest(name="1", status="inProgress")),
        ("POST", "/connections/c/tables/checkpoint", 200, None),
        ("POST", "/connections/c/tables/checkpoint", 200, STATUS),
        ("GET", "/config/files/a.prm", 304, None),
    ],
)
def test_an_answer_as_declared_is_accepted(method: str, path: str, status: int, response: Any) -> None:
    check_answer(routes.find(method, path)[0], status, answer(response))


@pytest.mark.parametrize(
    ("method", "path", "status", "response", "why"),
    [
        ("GET", "/extracts", 200, None, "it has no response"),
        ("GET", "/extracts", 201, LIST, "201 of GET /extracts is not as declared"),
        ("GET", "/extracts", 200, {**LIST, "more": 1}, "unknown field `more`"),
        ("GET", "/extracts", 200, {"$schema": "ogg:collection"}, "missing required field `items`"),
        ("GET", "/extracts", 200, {**LIST, "$schema": "ogg:list"}, "Invalid value 'ogg:list'"),
        ("GET", "/extracts", 200, {**LIST, "items": [{"name": 1}]}, "items"),
        ("DELETE", "/extracts/E1", 200, {"name": "E1"}, "it has a response"),
        ("DELETE", "/extracts/E1", 202, None, "it has no response"),
    ],
)
def test_another_answer_is_refused(method: str, path: str, status: int, response: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_answer(routes.find(method, path)[0], status, answer(response))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServiceState]:
    home = Home(tmp_path)
    home.ensure()
    found = ServiceState(home, ServiceParameters(port=1, plaintext=True), SystemClock())
    yield found
    found.close()


def test_a_service_that_checks_answers_a_mistake_with_500(state: ServiceState, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_unexpected_errors import asked

    monkeypatch.setattr(routes, "handle", lambda *_: Answer({"$schema": "api:versions"}))
    assert asked(Application(state), path="/services/v2/")[0] == 200
    status, body = asked(Application(state, check=check_answer), path="/services/v2/")
    assert status == 500
    assert b"is not as declared: Object missing required field `items`" in body


@pytest.mark.slow
def test_the_services_of_the_tests_check_their_answers(service: RunningService) -> None:
    entry = state_of(Home(service.home).service)[1]
    assert entry is not None
    assert f"{VARIABLE}=1\0" in Path(f"/proc/{entry.pid}/environ").read_text()
