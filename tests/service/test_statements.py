"""Statements over HTTP: outcomes as data, sessions with a login, roles, questions, and statements that take long."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
import uvicorn
from processes import until
from service_client import PASSWORD, RunningService, ServiceClient, free_port

from ggshell.client.connection import Connection
from ggshell.client.credentials import StoredLogin
from ggshell.client.remote import Remote, ShellChoices
from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.home.users import Role, Users
from ggshell.network.service_url import parse_url
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.answer_check import check_answer
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.app import Application
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState

pytestmark = pytest.mark.slow
PATH = "/ggshell/statements"


def run(client: ServiceClient, statement: str, **options: object) -> dict[str, object]:
    reply = client.post(PATH, {"statement": statement, **options})
    assert reply.status == 200, reply.text
    found: dict[str, object] = reply.response
    return found


def test_an_outcome_has_columns_rows_and_the_layout(client: ServiceClient) -> None:
    found = run(client, "INFO ALL")
    assert found["status"] == "ok"
    assert found["result"]["rows"] == [["MANAGER", "STOPPED", None, None, None]]
    assert found["result"]["layout"].startswith("\nProgram     Status      Group ")
    assert found["result"]["errorsFirst"] is True


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("csv", "program,status,group,lag_seconds,since_seconds\nMANAGER,STOPPED,,,\n"),
        ("markdown", "| program   | status   |"),
        ("json", '{"statement": "INFO ALL", "status": "ok"'),
        ("ggsci", "\nProgram     Status"),
    ],
)
def test_a_format_adds_the_text(client: ServiceClient, style: str, text: str) -> None:
    assert str(run(client, "INFO ALL", format=style)["text"]).startswith(text)


def test_a_statement_that_fails_is_an_answer_with_its_errors(client: ServiceClient) -> None:
    found = run(client, "INFO EXTRACT nope")
    assert (found["status"], found["result"]) == ("error", None)
    assert found["errors"][0]["code"] == "GGS-00201"
    assert found["errors"][0]["hint"]


def test_a_syntax_error_has_its_column(client: ServiceClient) -> None:
    error = run(client, "ADD EXTRACT e1, NONSENSE")["errors"][0]
    assert (error["column"], error["source"]) == (17, "ADD EXTRACT e1, NONSENSE")


def test_no_secret_of_a_statement_is_repeated(service: RunningService, client: ServiceClient) -> None:
    text = client.post(PATH, {"statement": "ADD USER x, ROLE USER, PASSWORD hunter2secret, WONDER"}).text
    assert "hunter2secret" not in text
    run(client, "ADD USER x, ROLE USER, PASSWORD hunter2secret")
    run(client, "DELETE USER x")
    assert "hunter2secret" not in (service.home / "ggserr.log").read_text()


def test_a_login_lasts_until_its_session_ends(service: RunningService) -> None:
    database = f"duckdb://{service.home}/target.duckdb"
    one, two = service.client("jane"), service.client("admin")
    assert "target" in str(run(one, f"DBLOGIN SOURCEDB {database}")["login"])
    assert "target" in str(run(one, "INFO ALL")["login"])
    assert run(two, "INFO ALL")["login"] == ""
    assert one.delete("/currentuser").status == 200
    assert run(service.client("jane"), "INFO ALL")["login"] == ""


def test_shells_of_one_user_have_sessions_of_their_own(service: RunningService) -> None:
    one, two = service.client("admin"), service.client("admin")
    for each in (one, two):
        assert each.post("/ggshell/sessions", {"autoManager": True}).status == 201
        each.session.auth = None
    assert one.session.cookies["ogg_session"] != two.session.cookies["ogg_session"]
    run(one, f"DBLOGIN SOURCEDB duckdb://{service.home}/target.duckdb")
    assert (run(two, "INFO ALL")["login"], run(one, "INFO ALL")["login"] != "") == ("", True)
    assert one.delete("/currentuser").status == 200
    assert (one.get("/currentuser").status, two.get("/currentuser").status) == (401, 200)


@pytest.mark.parametrize(
    ("user", "statement", "status"),
    [
        ("uma", "INFO ALL", 200),
        ("uma", "START EXTRACT *", 403),
        ("otto", "START EXTRACT *", 200),
        ("otto", "ADD EXTRACT e1, SOURCEISTABLE", 403),
        ("jane", "ADD CREDENTIALSTORE", 200),
        ("jane", "ADD USER x, PASSWORD correct-horse-7", 403),
        ("jane", "VIEW REPORT /etc/passwd", 403),
        ("admin", "VIEW REPORT dirwlt/users.key", 400),
        ("admin", "SHELL id", 400),
        ("admin", "STOP SERVICE", 400),
        ("", "INFO ALL", 401),
    ],
)
def test_the_role_decides(service: RunningService, user: str, statement: str, status: int) -> None:
    reply = service.client(user).post(PATH, {"statement": statement})
    assert reply.status == status
    if status == 403:
        assert "requires" in reply.body["messages"][0]["title"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"statement": 7}, 400),
        ({"statement": "INFO ALL", "format": "x"}, 400),
        ({"statement": "", "x": 1}, 400),
    ],
)
def test_a_body_that_is_not_valid_is_refused(client: ServiceClient, body: object, status: int) -> None:
    assert client.post(PATH, body).status == status


@pytest.mark.parametrize(
    "statement", ["", " ", "\0", ";", "--", "INFO ALL; INFO ALL", "x" * 100_000, "🙂", "!", "OBEY"]
)
def test_a_text_that_is_no_statement_gives_an_error(client: ServiceClient, statement: str) -> None:
    reply = client.post(PATH, {"statement": statement})
    assert reply.status in (200, 400)
    if reply.status == 200:
        assert reply.response["status"] == "error"


def test_a_question_is_answered_in_the_next_request(client: ServiceClient) -> None:
    for name in ("q1", "q2"):
        run(client, f"ADD EXTRACT {name}, SOURCEISTABLE")
    asked = run(client, "DELETE EXTRACT q*", answers=[])
    assert asked["question"] == {"text": "Delete 2 groups of EXTRACT Q* (y/n)? ", "hidden": False}
    assert run(client, "INFO EXTRACT q1")["status"] == "ok"
    assert run(client, "DELETE EXTRACT q*", answers=["y"])["status"] == "ok"
    assert run(client, "INFO EXTRACT q1")["status"] == "error"
    hidden = run(client, "ALTER CREDENTIALSTORE ADD USER u@h:1/d, ALIAS a", answers=[], interactive=True)
    assert hidden["question"] == {"text": "Password: ", "hidden": True}


def test_reading_statements_are_not_recorded_as_changes(service: RunningService, client: ServiceClient) -> None:
    before = (service.home / "ggserr.log").read_text().count("GGS-00905")
    run(client, "INFO ALL")
    assert (service.home / "ggserr.log").read_text().count("GGS-00905") == before


@pytest.fixture
def quick_service(tmp_path: Path) -> Iterator[tuple[str, ServiceState]]:
    """A service in this process that lets a request take two seconds, and its URL."""
    home = Home(tmp_path / "home")
    home.ensure()
    Users(home).add("admin", Role.SECURITY, PASSWORD)
    port = free_port()
    state = ServiceState(home, ServiceParameters(port=port, plaintext=True), SystemClock())
    server = uvicorn.Server(
        uvicorn.Config(Application(state, deadline=2, check=check_answer), lifespan="off", log_level="error")
    )
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    until("the service to start", lambda: server.started)
    yield f"http://127.0.0.1:{port}", state
    server.should_exit = True
    thread.join()
    state.close()


def test_a_statement_that_takes_long_is_followed(quick_service: tuple[str, ServiceState]) -> None:
    url, state = quick_service
    remote = Remote(Connection(parse_url(url), None), StoredLogin("", "admin", PASSWORD))
    remote.sign_in(ShellChoices())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = f"u@127.0.0.1:{silent.getsockname()[1]}/d"
        found = remote.run(f"DBLOGIN USERID {database}, PASSWORD x", None)
    assert found["errors"]
    assert [each.status for each in state.long_requests.values()] == ["completed"]
    client = ServiceClient(url)
    assert client.get(f"{PATH}/1").response["status"] == "error"
    assert client.get(f"{PATH}/2").status == 404
    finished: Future[Answer | RawAnswer] = Future()
    finished.set_result(Answer())
    admin = Principal("admin", Role.SECURITY, "", state.users.identity("admin") or "")
    other = state.follow(admin, "DELETE", f"{url}/services/v2/extracts/E1", finished)
    assert client.get(f"{PATH}/{other.name}").status == 404  # no statement: requests/NAME/result has its answer
    assert client.get(f"/requests/{other.name}/result").status == 200
    remote.close()
    assert state.shells.number == 0
