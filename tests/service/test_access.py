"""ACCESSRULE of mgr.prm: from where, with which program and as whom a client may use the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_ggshell
from requests.adapters import HTTPAdapter
from service_client import RunningService, ServiceClient, add_users, free_port

from ggshell.clock import FakeClock
from ggshell.errors import HttpError, ParameterError
from ggshell.home.events import EventLog
from ggshell.home.home import Home
from ggshell.parameters.access_rules import Program
from ggshell.service.access import AccessControl
from ggshell.service.refused_sign_ins import PAUSE_SECONDS, RefusedSignIns

slow = pytest.mark.slow
NEAR, FAR = "127.0.0.1", "127.0.0.2"


class From(HTTPAdapter):
    """Sends requests from another address of this machine."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *arguments: object, **options: object) -> None:
        options["source_address"] = (self._address, 0)
        super().init_poolmanager(*arguments, **options)  # type: ignore[no-untyped-call]


def rule(home: Path, *lines: str) -> None:
    """Replace the rules of a home."""
    fresh = home / "dirprm" / "mgr.new"
    fresh.write_text("".join(f"{line}\n" for line in ("-- Manager", *lines)))
    fresh.replace(home / "dirprm" / "mgr.prm")


@pytest.fixture
def ruled(service: RunningService) -> Iterator[RunningService]:
    """A running service; its rules are removed afterwards."""
    yield service
    rule(service.home)
    service.client("").get("/version")


def client_from(service: RunningService, address: str, user: str = "admin", password: str = "") -> ServiceClient:
    client = service.client(user, password) if password else service.client(user)
    client.session.mount("http://", From(address))
    return client


def events(service: RunningService, code: str) -> int:
    return (service.home / "ggserr.log").read_text().count(code)


@slow
def test_an_address_that_a_rule_denies_gets_nothing(ruled: RunningService) -> None:
    rule(ruled.home, f"ACCESSRULE, PROG *, IPADDR {FAR}, DENY")
    before = events(ruled, "GGS-00941")
    far = client_from(ruled, FAR)
    for method, path in (
        ("GET", "/version"),
        ("GET", "/extracts"),
        ("GET", "/nothing/of/this"),
        ("GET", "//services/other/adminsrvr/v2/extracts"),
        ("OPTIONS", "/extracts"),
        ("GET", "//metrics"),
        ("POST", "/ggshell/sessions"),
        ("DELETE", "/extracts/E1"),
    ):
        reply = far.send(method, path)
        assert (reply.status, reply.headers["connection"]) == (403, "close"), path
        assert reply.codes == ["GGS-00941"]
    assert client_from(ruled, FAR, password="wrong-horse-7").get("/extracts").status == 403
    assert client_from(ruled, NEAR).get("/extracts").status == 200
    assert events(ruled, "GGS-00941") == before + 1
    rule(ruled.home, f"ACCESSRULE, PROG *, IPADDR {FAR}, ALLOW", "ACCESSRULE, PROG *, DENY")
    assert client_from(ruled, FAR).get("/extracts").status == 200
    assert client_from(ruled, NEAR).get("/extracts").status == 403


@slow
def test_a_shell_and_a_client_of_the_api_are_different_programs(ruled: RunningService) -> None:
    rule(ruled.home, "ACCESSRULE, PROG MGR, DENY")
    client = ruled.client()
    assert client.get("/extracts").status == 403
    assert client.post("/ggshell/sessions", {}).status == 201
    client.session.auth = None  # the session's cookie is that of a shell
    assert client.get("/extracts").status == 200
    assert client.post("/ggshell/statements", {"statement": "INFO ALL"}).status == 200
    rule(ruled.home, "ACCESSRULE, PROG GGSCI, DENY")
    assert ruled.client().get("/extracts").status == 200
    assert client.get("/extracts").status == 403
    assert client.post("/ggshell/statements", {"statement": "INFO ALL"}).status == 403
    assert ruled.client().post("/ggshell/sessions", {}).status == 403


@slow
def test_a_rule_for_a_user_applies_after_the_sign_in(ruled: RunningService) -> None:
    rule(ruled.home, "ACCESSRULE, PROG *, LOGIN_ID jane, ALLOW", "ACCESSRULE, PROG *, DENY")
    assert ruled.client("jane").get("/extracts").status == 200
    assert ruled.client("uma").get("/extracts").status == 403
    assert ruled.client("").get("/version").status == 403
    assert ruled.client("jane", "wrong-horse-7").get("/extracts").status == 401


@slow
def test_rules_that_become_invalid_leave_the_former_ones(ruled: RunningService) -> None:
    rule(ruled.home, f"ACCESSRULE, PROG *, IPADDR {FAR}, DENY")
    assert client_from(ruled, FAR).get("/version").status == 403
    before = events(ruled, "GGS-00942")
    rule(ruled.home, "ACCESSRULE, PROG *, IPADDR nowhere.example.com, ALLOW")
    for _ in range(3):
        assert client_from(ruled, FAR).get("/version").status == 403
        assert client_from(ruled, NEAR).get("/version").status == 200
    assert events(ruled, "GGS-00942") == before + 1
    (ruled.home / "dirprm" / "mgr.prm").unlink()
    assert client_from(ruled, FAR).get("/version").status == 403


@slow
def test_the_service_does_not_start_without_its_rules(tmp_path: Path) -> None:
    add_users(tmp_path)
    (tmp_path / "dirprm" / "service.prm").write_text(f"PORT {free_port()}\nPLAINTEXT\n")
    rule(tmp_path, "ACCESSRULE, PROG NOSUCH, DENY")
    done = run_ggshell("--home", tmp_path, "-c", "START SERVICE")
    assert (done.returncode, "NOSUCH is not a valid program" in done.stdout + done.stderr) == (1, True)


@slow
def test_invalid_rules_leave_a_restarted_service_running(ruled: RunningService) -> None:
    rule(ruled.home, "ACCESSRULE, PROG NOSUCH, DENY")
    said = ruled.run("RESTART SERVICE", code=1)
    assert "NOSUCH is not a valid program" in said
    assert "keeps running with its previous settings" in said


@slow
def test_only_security_changes_rules_over_http(ruled: RunningService) -> None:
    address, jane, admin = "/config/files/mgr.prm", ruled.client("jane"), ruled.client()
    denying = {"lines": ["PORT 7809", "ACCESSRULE, PROG *, IPADDR 10.*, DENY"]}
    assert jane.put(address, denying).status == 403
    assert admin.put(address, denying).status == 200
    assert jane.put(address, {"lines": [*denying["lines"], "AUTOSTART ER *"]}).status == 200
    for lines in (["PORT 7809"], [denying["lines"][0], "ACCESSRULE, PROG *, &", "IPADDR 11.*, DENY"]):
        assert jane.put(address, {"lines": lines}).status == 403
    assert jane.delete(address).status == 403
    assert jane.post("/config/files/rules.inc", {"lines": denying["lines"][1:]}).status == 403
    assert admin.post("/config/files/rules.inc", {"lines": denying["lines"][1:]}).status == 201
    assert jane.delete("/config/files/rules.inc").status == 403
    assert jane.put(address, {"lines": ["INCLUDE dirprm/rules.inc"]}).status == 200  # the same rules
    assert admin.delete(address).status == 200


def test_a_receiver_asks_with_its_own_program_and_reports_once_a_minute(tmp_path: Path) -> None:
    home, clock = Home(tmp_path), FakeClock()
    home.ensure()
    rule(tmp_path, "ACCESSRULE, PROG SERVER, IPADDR 10.1.*, ALLOW", "ACCESSRULE, PROG COLLECTOR, DENY")
    access = AccessControl(home, RefusedSignIns(clock), EventLog(home, clock))
    access.require("10.1.2.3", Program.COLLECTOR)
    access.require("10.9.9.9", Program.MANAGER, login="uma")
    for address in ("10.9.9.9", "10.9.9.9", "10.9.9.8", "10.9.9.9"):
        with pytest.raises(HttpError, match="denies program COLLECTOR from 10"):
            access.require(address, Program.COLLECTOR, login="")
    clock.advance(PAUSE_SECONDS + 1)
    with pytest.raises(HttpError):
        access.require("10.9.9.9", Program.COLLECTOR)
    lines = [line for line in (tmp_path / "ggserr.log").read_text().splitlines() if "GGS-00941" in line]
    assert [line.partition("from ")[2] for line in lines] == [
        "10.9.9.9",
        "10.9.9.8",
        "10.9.9.9 (2 more refused since the last message)",
    ]
    rule(tmp_path, "ACCESSRULE, PROG *, ALLOW, DENY")
    with pytest.raises(ParameterError):
        AccessControl(home, RefusedSignIns(clock), EventLog(home, clock))
