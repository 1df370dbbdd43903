"""Who may open a connection for trails, and that the role DISTRIBUTION does nothing else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from service_client import PASSWORD, RunningService, add_users

from ggshell.clock import FakeClock
from ggshell.errors import HttpError, UsageError
from ggshell.home.home import Home
from ggshell.home.users import Role, Users, parse_role
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.request_sign_in import RequestSignIn
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState

CLIENT = ("10.1.2.3", 50_000)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServiceState]:
    add_users(tmp_path)
    Users(Home(tmp_path)).add("carl", Role.DISTRIBUTION, None)
    found = ServiceState(Home(tmp_path), ServiceParameters(), FakeClock())
    yield found
    found.close()


def sender(state: ServiceState, headers: dict[str, str], certificate: str = "") -> Principal | None:
    return asyncio.run(RequestSignIn(state, lambda _: certificate, 20.0).sender(headers, CLIENT))


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


@pytest.mark.parametrize("name", ["dora", "otto", "jane", "admin"])
def test_a_user_who_sends_trails_signs_in_with_a_password(state: ServiceState, name: str) -> None:
    found = sender(state, basic(name))
    assert found is not None
    assert (found.name, found.role.sends_trails) == (name, True)


def test_a_user_who_sends_trails_signs_in_with_a_certificate(state: ServiceState) -> None:
    found = sender(state, {}, "carl")
    assert found is not None
    assert found._replace(identity="") == Principal("carl", Role.DISTRIBUTION)


def test_a_user_who_only_reads_sends_no_trails(state: ServiceState) -> None:
    with pytest.raises(HttpError, match="User, which does not send trails") as refused:
        sender(state, basic("uma"))
    assert refused.value.status == 403


def test_a_connection_without_credentials_has_no_user(state: ServiceState) -> None:
    assert sender(state, {}) is None
    principal = sender(state, basic("dora"))
    assert principal is not None
    assert sender(state, {"cookie": f"ogg_session={principal.session}"}) is None  # a page of another site may send it
    assert sender(state, {"authorization": f"Bearer {principal.session}"}) == principal


def test_wrong_credentials_are_refused_and_reported(state: ServiceState) -> None:
    for headers, certificate in ((basic("dora", "wrong-horse-7"), ""), ({}, "nobody"), ({}, "dora")):
        with pytest.raises(HttpError) as refused:
            sender(state, headers, certificate)
        assert refused.value.status == 401
    assert "sign-in from 10.1.2.3 refused" in (state.home.root / "ggserr.log").read_text()


def test_no_user_has_the_role_of_a_request_without_credentials() -> None:
    assert parse_role("distribution") is Role.DISTRIBUTION
    with pytest.raises(UsageError, match="ANYONE is not a valid role"):
        parse_role("ANYONE")


@pytest.mark.slow
def test_such_a_user_is_shown_and_signs_in_for_nothing_else(service: RunningService) -> None:
    service.run("ADD USER north, ROLE DISTRIBUTION, PASSWORD battery-staple-8")
    service.run("ALTER USER otto, ROLE distribution")
    assert "north                   DISTRIBUTION" in service.run("INFO USERS")
    every = service.client().get("/authorizations/Distribution").response["items"]
    assert {each["name"] for each in every} == {"dora", "north", "otto"}
    for user, password in (("north", "battery-staple-8"), ("otto", PASSWORD)):
        client = service.client(user, password)
        for path in ("/version", "/currentuser", "/authorization", "//metrics", "/openapi.json"):
            assert client.get(path).status == 403, path
        refused = client.post("/ggshell/statements", {"statement": "INFO ALL"})
        assert (refused.status, "only sends trails" in refused.text) == (403, True)
    assert service.client("north", "wrong-horse-7").get("/currentuser").status == 401
    assert service.client("").get("/version").status == 200
