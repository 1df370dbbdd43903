"""Guessing passwords and opening sessions without end: what it costs the others, and what ggserr.log shows of it."""

from __future__ import annotations

import base64
import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from service_client import PASSWORD, RunningService, add_users

from ggshell.clock import FakeClock
from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.home.users import Role, User, Users
from ggshell.service.refused_sign_ins import PAUSE_SECONDS, RefusedSignIns
from ggshell.service.sign_in import FREE_FAILURES, MOST_OWN_SESSIONS, Principal, SignIn


@pytest.fixture
def sign_in(tmp_path: Path) -> SignIn:
    add_users(tmp_path)
    found = SignIn(Users(Home(tmp_path)), FakeClock(), 600.0)
    assert found.has_users
    return found


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


def test_guesses_that_are_already_queued_must_wait_too(sign_in: SignIn) -> None:
    guesses = [basic("uma", f"guess-{number}") for number in range(2 * FREE_FAILURES)]
    assert [sign_in.quick(guess, "h", "") for guess in guesses] == [None] * len(guesses)
    statuses = []
    for guess in guesses:
        with pytest.raises(HttpError) as refused:
            sign_in.slow(guess, "h")
        statuses.append(refused.value.status)
    assert statuses == [401] * FREE_FAILURES + [429] * FREE_FAILURES
    assert sign_in.slow(basic("uma", PASSWORD), "another address").name == "uma"


@pytest.mark.parametrize("change", ["password", "deletion"])
def test_a_password_that_changes_during_its_check_is_not_remembered(
    sign_in: SignIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    users, check = Users(Home(tmp_path)), Users.check

    def check_and_change(self: Users, name: str, password: str) -> User | None:
        found = check(self, name, password)
        if change == "password":
            users.alter(name, password="another-horse-8")
        else:
            users.delete(name)
        sign_in.quick({}, "h", "")  # another request, which reads the users again
        return found

    monkeypatch.setattr(Users, "check", check_and_change)
    with contextlib.suppress(HttpError):  # a deleted user is refused immediately
        sign_in.slow(basic("uma", PASSWORD), "h")
    monkeypatch.undo()
    with pytest.raises(HttpError, match="not valid"):
        sign_in.quick(basic("uma", PASSWORD), "h", "") or sign_in.slow(basic("uma", PASSWORD), "h")


def test_a_user_with_many_tokens_ends_the_own_oldest_one(sign_in: SignIn) -> None:
    other, _ = sign_in.token(Principal("jane", Role.ADMINISTRATOR))
    tokens = [sign_in.token(Principal("uma", Role.USER))[0] for _ in range(MOST_OWN_SESSIONS + 1)]
    assert [sign_in.is_live(token) for token in (tokens[0], tokens[1], tokens[-1], other)] == [False, True, True, True]


def test_a_refused_sign_in_is_reported_once_a_minute() -> None:
    clock = FakeClock()
    refused = RefusedSignIns(clock)
    assert [refused.report("uma", "h") for _ in range(4)] == [0, None, None, None]
    assert refused.report("uma", "other") == 0
    clock.advance(PAUSE_SECONDS)
    assert [refused.report("uma", "h"), refused.report("uma", "h")] == [3, None]


@pytest.mark.slow
def test_guesses_at_the_same_time_are_checked_five_times_at_most(service: RunningService) -> None:
    clients = [service.client("uma", f"guess-{number}") for number in range(30)]
    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = Counter(pool.map(lambda each: each.get("/currentuser").status, clients))
    assert statuses == {401: FREE_FAILURES, 429: len(clients) - FREE_FAILURES}
    assert (service.home / "ggserr.log").read_text().count("sign-in from") == 1
