"""What ends with a deleted user, even if a user with the same name is added again: sessions, tokens, and scheduled tasks."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import until
from service_client import PASSWORD, RunningService, ServiceClient, add_users

from ggshell.clock import FakeClock
from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.home.users import Role, User, Users
from ggshell.service.sign_in import Principal, SignIn

REPORT = {"name": "report", "reportType": "lag", "thresholds": [{"type": "critical", "units": "seconds", "value": 5}]}
OTHER_PASSWORD = "battery-staple-8"


class InterruptedUsers(Users):
    """Users that change while a password is being checked."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.meanwhile: list[Callable[[], object]] = []

    def check(self, name: str, password: str) -> User | None:
        found = super().check(name, password)
        while self.meanwhile:
            self.meanwhile.pop(0)()
        return found


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def users(tmp_path: Path) -> InterruptedUsers:
    add_users(tmp_path)
    return InterruptedUsers(Home(tmp_path))


@pytest.fixture
def sign_in(users: InterruptedUsers) -> SignIn:
    found = SignIn(users, FakeClock(), 600.0)
    assert found.has_users
    return found


def test_tokens_of_a_certificate_user_who_is_added_again_are_not_valid(users: Users, sign_in: SignIn) -> None:
    users.add("cert", Role.OPERATOR, None)
    principal = sign_in.quick({}, "h", "cert")
    assert principal is not None
    token, shell = sign_in.token(principal)[0], sign_in.separate(principal)
    users.alter("cert", info="a description is no reason to sign in again")
    assert (sign_in.quick(bearer(token), "h", ""), sign_in.is_live(shell)) == (
        Principal("cert", Role.OPERATOR, token, principal.identity),
        True,
    )
    users.delete("cert")
    users.add("cert", Role.OPERATOR, None)
    assert not sign_in.is_live(shell)
    with pytest.raises(HttpError, match="not valid"):
        sign_in.quick(bearer(token), "h", "")


def test_a_session_that_ended_during_a_request_gives_no_token(users: Users, sign_in: SignIn) -> None:
    principal = sign_in.slow(basic("uma", PASSWORD), "h")
    users.delete("uma")
    users.add("uma", Role.SECURITY, OTHER_PASSWORD)
    assert not sign_in.is_live(principal.session)
    for issue in (sign_in.token, sign_in.separate):
        with pytest.raises(HttpError, match="the session has ended"):
            issue(principal)


def test_a_user_who_is_replaced_during_the_check_of_the_password_does_not_sign_in(
    users: InterruptedUsers, sign_in: SignIn
) -> None:
    """Regression: the old password stayed valid until the users changed again."""

    def replace() -> None:
        users.delete("uma")
        users.add("uma", Role.SECURITY, OTHER_PASSWORD)
        assert sign_in.has_users  # another request reads the users

    users.meanwhile.append(replace)
    with pytest.raises(HttpError, match="the user name or the password is not valid"):
        sign_in.slow(basic("uma", PASSWORD), "h")
    assert sign_in.quick(basic("uma", PASSWORD), "h", "") is None
    assert sign_in.slow(basic("uma", OTHER_PASSWORD), "h").role is Role.SECURITY


def history(client: ServiceClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/tasks/nightly/info/history").response["history"]
    return found


@pytest.mark.slow
def test_a_task_of_a_deleted_user_does_not_run_for_a_user_of_the_same_name(
    service: RunningService, client: ServiceClient
) -> None:
    body = {"command": REPORT, "schedule": {"every": {"units": "hours", "value": 1}}}
    assert service.client("jane").post("/tasks/nightly", body).status == 201
    service.run("DELETE USER jane")
    service.run(f"ADD USER jane, ROLE SECURITY, PASSWORD {PASSWORD}")
    assert client.patch("/tasks/nightly", {"status": "running", "description": "nightly"}).status == 200
    until("the task is refused", lambda: bool(history(client)))
    assert (
        history(client)[0]["status"],
        "jane, who created the task, was deleted" in history(client)[0]["output"],
    ) == (
        "abended",
        True,
    )
    assert client.get("/tasks/nightly").response["enabled"] is False
    assert "next" not in client.get("/tasks/nightly/info/status").response
    assert client.patch("/tasks/nightly", {"command": REPORT, "status": "running"}).status == 200
    until("the task runs for its new owner", lambda: len(history(client)) == 2)
    assert history(client)[0]["status"] == "stopped"
    assert client.delete("/tasks/nightly").status == 200
