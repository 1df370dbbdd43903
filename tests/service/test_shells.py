"""The shells of signed-in sessions: when they end, and one statement at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until

from ggshell.clock import SystemClock
from ggshell.errors import GgsError, HttpError, StoreError
from ggshell.home.home import Home
from ggshell.home.users import Role, Users
from ggshell.service.shells import Shells, ShellSettings
from ggshell.service.sign_in import Principal, SignIn

LONG = 3600.0


class Login:
    """A database login that only says whether it is open."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def _unexpected(error: GgsError) -> None:
    raise error


@pytest.fixture
def live() -> set[str]:
    return {"a", "b"}


@pytest.fixture
def shells(tmp_path: Path, live: set[str]) -> Iterator[Shells]:
    found = Shells(Home(tmp_path), SystemClock(), live.__contains__, LONG, _unexpected)
    yield found
    found.close_all()


def logged_in(shells: Shells, token: str) -> Login:
    """Log in to a database in the shell of a token."""
    login = Login()
    with shells.use(token) as session:
        session.log_in(login)  # type: ignore[arg-type]
    return login


def test_a_session_keeps_its_login_and_ends_at_sign_out(shells: Shells) -> None:
    login, other = logged_in(shells, "a"), logged_in(shells, "b")
    with shells.use("a") as session:
        assert session.login is login
    shells.close("a")
    assert (login.closed, other.closed, shells.number) == (True, False, 1)


def test_a_session_ends_when_its_token_is_not_valid_any_more(tmp_path: Path) -> None:
    live = {"a"}
    shells = Shells(Home(tmp_path), SystemClock(), live.__contains__, 0.4, _unexpected)
    login = logged_in(shells, "a")
    live.clear()
    until("the shell to end", lambda: login.closed)
    assert shells.number == 0
    shells.close_all()


def test_shells_end_also_after_the_users_could_not_be_read_for_a_while(tmp_path: Path) -> None:
    """Regression: after one such error, no shell ended any more, and its login to a database stayed open."""
    damaged, reported = threading.Event(), list[GgsError]()

    def is_live(token: str) -> bool:
        if not damaged.is_set():
            return True
        if not reported:
            raise StoreError("users.ggs is damaged")
        return False

    shells = Shells(Home(tmp_path), SystemClock(), is_live, 0.4, reported.append)
    login = logged_in(shells, "a")
    damaged.set()
    until("the shell to end", lambda: login.closed)
    assert [str(error) for error in reported] == ["users.ggs is damaged"]
    shells.close_all()


def test_a_statement_that_runs_is_completed_before_its_session_ends(shells: Shells) -> None:
    login = logged_in(shells, "a")
    with shells.use("a"):
        shells.close("a")
        assert not login.closed
    assert login.closed


def test_a_second_statement_of_a_session_is_refused_while_one_runs(shells: Shells) -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with shells.use("a"):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(60)
    with pytest.raises(HttpError, match="another statement of this session") as refused, shells.use("a"):
        pass
    assert refused.value.status == 409
    leave.set()
    thread.join()
    with shells.use("a"):
        pass


def test_without_a_token_a_session_lasts_for_one_statement(shells: Shells) -> None:
    login = logged_in(shells, "")
    assert (login.closed, shells.number) == (True, 0)


def test_a_shell_has_the_settings_of_its_client(shells: Shells) -> None:
    shells.open("a", ShellSettings("local", auto_manager=True))
    with shells.use("a") as session:
        assert (session.options.engine, session.options.auto_manager, session.options.shell) == ("local", True, False)


def test_a_session_of_its_own_ends_with_the_users_password_but_not_with_another_users(tmp_path: Path) -> None:
    users = Users(Home(tmp_path))
    for name in ("admin", "jane"):
        users.add(name, Role.SECURITY, "correct-horse-7")
    sign_in = SignIn(users, SystemClock(), LONG)
    assert sign_in.has_users
    one, two = (sign_in.separate(Principal("jane", Role.SECURITY)) for _ in range(2))
    assert one != two
    users.alter("admin", password="another-horse-7")
    assert sign_in.is_live(one)
    sign_in.sign_out(Principal("jane", Role.SECURITY, one))
    assert (sign_in.is_live(one), sign_in.is_live(two)) == (False, True)
    users.alter("jane", password="another-horse-7")
    assert not sign_in.is_live(two)


def test_a_session_that_a_bearer_token_started_ends_with_the_token(tmp_path: Path) -> None:
    users = Users(Home(tmp_path))
    users.add("jane", Role.USER, "correct-horse-7")
    sign_in = SignIn(users, SystemClock(), 0.3)
    assert sign_in.has_users
    token, _ = sign_in.token(Principal("jane", Role.USER))
    session = sign_in.separate(Principal("jane", Role.USER, token))
    assert sign_in.is_live(session)
    header = {"cookie": f"ogg_session={session}"}

    def has_ended() -> bool:
        try:
            sign_in.quick(header, "here", "")
        except HttpError:
            return True
        return False

    until("the session to end although it is used", has_ended)
