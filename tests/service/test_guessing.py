"""Guessing passwords and opening sessions without end: what it costs the others, and what ggserr.log shows of it."""

from __future__ import annotations

import base64
import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest
from service_client import PASSWORD, RunningService, ServiceClient, add_users, service_here

from ggshell.clock import FakeClock
from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.home.users import Role, User, Users
from ggshell.service import attempts
from ggshell.service.attempts import (
    FREE_ADDRESS_FAILURES,
    FREE_FAILURES,
    LONGEST_DELAY_SECONDS,
    LONGEST_WAIT_SECONDS,
    SPACE_SECONDS,
    Attempts,
)
from ggshell.service.refused_sign_ins import PAUSE_SECONDS, RefusedSignIns
from ggshell.service.sign_in import MOST_OWN_SESSIONS, Principal, SignIn


@pytest.fixture
def sign_in(tmp_path: Path) -> SignIn:
    add_users(tmp_path)
    found = SignIn(Users(Home(tmp_path)), FakeClock(), 600.0)
    assert found.has_users
    return found


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


@pytest.mark.slow
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


def test_a_wrong_password_that_is_sent_again_locks_nobody_out(sign_in: SignIn) -> None:
    old = basic("uma", "an-old-password")
    with pytest.raises(HttpError):
        sign_in.slow(old, "h")
    for _ in range(3 * FREE_FAILURES):
        with pytest.raises(HttpError) as refused:
            sign_in.quick(old, "h", "")
        assert (refused.value.status, refused.value.code) == (401, "GGS-00906")
    assert sign_in.slow(basic("uma", PASSWORD), "h").name == "uma"


def test_a_password_that_was_wrong_can_become_the_right_one(tmp_path: Path, sign_in: SignIn) -> None:
    new = basic("uma", "another-horse-7")
    with pytest.raises(HttpError):
        sign_in.slow(new, "h")
    Users(Home(tmp_path)).alter("uma", password="another-horse-7")
    assert sign_in.quick(new, "h", "") is None
    assert sign_in.slow(new, "h").name == "uma"


def guessed(clock: FakeClock, found: Attempts, name: str, seconds: float) -> int:
    """Guess ten times a second; returns how many guesses were checked."""
    checked = 0
    for number in range(round(seconds * 10)):
        try:
            found.require_patience(name, "h")
        except HttpError as refused:
            assert refused.status == 429
            assert int(refused.headers["Retry-After"]) <= LONGEST_WAIT_SECONDS
        else:
            checked += 1
            found.failed(name, "h", f"{name} {number}".encode())
        clock.advance(0.1)
    return checked


def test_guessing_for_a_user_is_slow_and_the_wait_is_short() -> None:
    clock = FakeClock()
    found = Attempts(clock)
    assert guessed(clock, found, "uma", 600) <= FREE_FAILURES + 3 + 600 / LONGEST_WAIT_SECONDS
    found.require_patience("otto", "h")
    found.require_patience("uma", "other")
    clock.advance(LONGEST_WAIT_SECONDS)
    found.require_patience("uma", "h")


def test_an_address_that_tries_many_users_is_delayed() -> None:
    clock = FakeClock()
    found = Attempts(clock)
    for number in range(FREE_ADDRESS_FAILURES):
        assert found.delay("h") == 0
        found.failed(f"user {number}", "h", str(number).encode())
    assert [found.delay("h") for _ in range(3)] == [0, SPACE_SECONDS, 2 * SPACE_SECONDS]
    with pytest.raises(HttpError) as refused:
        for _ in range(100):
            assert found.delay("h") <= LONGEST_DELAY_SECONDS
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "4"})
    assert found.delay("other") == 0
    clock.advance(700 + LONGEST_DELAY_SECONDS)
    found.failed("user", "h", b"")
    assert found.delay("h") == 0


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


@pytest.mark.slow
def test_a_program_with_an_old_password_does_not_lock_its_user_out(service: RunningService) -> None:
    old = service.client("jane", "an-old-password")
    assert {old.get("/currentuser").status for _ in range(3 * FREE_FAILURES)} == {401}
    assert service.client("jane").get("/currentuser").status == 200


@pytest.mark.slow
def test_the_right_password_is_delayed_but_accepted_at_an_address_that_guesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FREE_ADDRESS_FAILURES", 2)
    with service_here(tmp_path, 25.0) as (url, _):
        for name in ("one", "two"):
            assert ServiceClient(url, name, "a-guess").get("/currentuser").status == 401
        names = ("jane", "otto", "uma")
        begun = monotonic()
        with ThreadPoolExecutor(len(names)) as pool:
            assert set(pool.map(lambda each: ServiceClient(url, each).get("/currentuser").status, names)) == {200}
        assert monotonic() - begun >= 2 * SPACE_SECONDS
