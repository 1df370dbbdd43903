"""ggserr.log over HTTP, the pages about parameters and codes, and what is not supported."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from processes import until
from service_client import RunningService, ServiceClient

from ggshell.clock import FakeClock, from_datetime
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home
from ggshell.home.process_file import read_process_file
from ggshell.service.event_lines import Wanted, events
from ggshell.service.routes import routes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def started_group(service: RunningService) -> None:
    """An Extract that abends because it has no login."""
    client = service.client()
    extract = {"source": "tables", "config": ["EXTRACT logs", "USERIDALIAS none", "EXTFILE ./x", "TABLE s.*;"]}
    assert client.post("/extracts/LOGS", extract).status == 201
    service.run("START MANAGER")
    service.run("START EXTRACT LOGS")
    until("LOGS abends", lambda: "(abended)" in (service.home / "ggserr.log").read_text())


def test_the_error_log_is_shown_as_messages_and_as_text(service: RunningService, client: ServiceClient) -> None:
    found = client.get("/logs/events").response
    assert (found["enabled"], found["dataExists"]) == (True, True)
    first = found["items"][0]
    assert (first["code"], first["severity"]) == ("OGG-00987", "INFO")
    assert first["title"].startswith("GGSCI command")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["issued"])
    text = client.get("/logs/events", headers={"Accept": "text/plain"}).text
    assert (service.home / "ggserr.log").read_text().startswith(text)
    assert client.get("/messages").response["messages"][0] == first


def test_messages_are_selected_by_number_and_process(client: ServiceClient) -> None:
    every = client.get("/monitoring/messages").response["messages"]
    assert [each["identifier"] for each in every] == sorted(each["identifier"] for each in every)
    some = client.get("/monitoring/messages?fromID=2&toID=4&limit=2").response["messages"]
    assert [each["identifier"] for each in some] == [2, 3]
    after = client.get("/monitoring/messages?fromID=2&toID=4&offset=1").response["messages"]
    assert [each["identifier"] for each in after] == [3, 4]
    own = client.get("/monitoring/LOGS/messages").response["messages"]
    assert {each["process"] for each in own} == {"LOGS"}
    assert client.get("/monitoring/lastMessageId").response["identifier"] >= every[-1]["identifier"]
    assert client.get("/monitoring/NONE/messages").status == 404
    assert client.get("/monitoring/messages?limit=x").status == 400


def test_status_changes_are_those_of_the_processes(client: ServiceClient) -> None:
    changes = client.get("/monitoring/LOGS/statusChanges").response["statusChange"]
    assert changes[0]["status"] == "Starting"
    assert "Abend" in [each["status"] for each in changes]
    last = client.get("/monitoring/lastStatusChangeId").response["identifier"]
    assert last == client.get("/monitoring/statusChanges").response["statusChange"][-1]["identifier"]


def test_logs_are_read_only(client: ServiceClient) -> None:
    assert [each["name"] for each in client.get("/logs").response["items"]] == ["default", "events"]
    assert "ggshell Service" in client.get("/logs/default", headers={"Accept": "text/plain"}).text
    assert client.patch("/logs/default", {"enabled": True}).status == 200
    assert client.patch("/logs/default", {"enabled": False}).status == 400
    assert client.delete("/logs/events").status == 400
    assert client.get("/logs/none").status == 404


def test_parameters_and_codes_are_described_without_signing_in(service: RunningService) -> None:
    client = service.client("")
    listed = [each["name"] for each in client.get("/parameters").response["items"]]
    assert {"TABLE", "MAP", "USERIDALIAS"} < set(listed)
    info = client.get("/parameters/useridalias").response["info"][0]
    assert {"Extract", "Replicat"} <= set(info["components"])
    assert client.get("/parameters/TABEL").status == 404
    assert "GGS-00905" in [each["name"] for each in client.get("/oggerr").response["items"]]
    page = client.get("/oggerr/OGG-01668").response
    assert (page["severity"], bool(page["cause"]), bool(page["action"])) == ("ERROR", True, True)
    assert client.get("/oggerr/OGG-99999").status == 404


def test_every_resource_without_a_meaning_says_so(client: ServiceClient) -> None:
    found = [route for route in routes() if route.handler.__module__.endswith(".unsupported")]
    assert len(found) > 40
    for route in found:
        reply = client.send(route.method, re.sub(r"\{\w+\}", "x", route.path))
        if reply.status == 200:
            assert (route.method, reply.response["items"]) == ("GET", []), route.path
        else:
            assert (reply.status, reply.codes) == (404, ["GGS-00904"]), route.path


def test_only_a_part_of_a_long_report_is_in_memory(service: RunningService, client: ServiceClient) -> None:
    """Regression: an answer needed four times the memory of the report."""
    report = service.home / "dirrpt" / "LOGS.rpt"
    before = report.read_bytes()
    client.get("/extracts/LOGS/info/reports/LOGS.rpt")
    pid = read_process_file(service.home / "dirpcs" / "SERVICE.pcs").pid
    try:
        with report.open("wb") as file:
            file.writelines(f"{number:99}\n".encode() for number in range(1_000_000))
        size = report.stat().st_size
        used = peak_megabytes(pid)
        plain = {"Accept": "text/plain"}
        answers = [
            client.get("/extracts/LOGS/info/reports/LOGS.rpt", headers=plain).text,
            client.post("/ggshell/statements", {"statement": "VIEW REPORT LOGS"}).response["result"]["page"],
        ]
        for text in answers:
            assert text.startswith("(the first ")
            assert text.endswith(f"{999_999:99}\n")
            assert len(text) < 5 << 20
        part = client.get(f"/extracts/LOGS/info/reports/LOGS.rpt?offset={size - 200}", headers=plain).text
        assert part == f"{999_998:99}\n{999_999:99}\n"
        assert client.get("/extracts/LOGS/info/reports/LOGS.rpt?offset=-1").status == 400
        assert peak_megabytes(pid) - used < 60
        assert len(service.run("VIEW REPORT LOGS")) >= size  # a shell at the home shows all
    finally:
        report.write_bytes(before)


def peak_megabytes(pid: int) -> float:
    """The most memory that a process has used."""
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found) / 1024


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of a place with daylight saving time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_a_clock_repeats_is_not_read_twice(tmp_path: Path) -> None:
    """Regression: the messages of the second one had the times of the first one."""
    clock = FakeClock(from_datetime(datetime(2026, 10, 24, 23, 50, tzinfo=UTC)))
    log = EventLog(Home(tmp_path), clock)
    written = []
    for _ in range(10):
        log.write(Severity.INFO, "GGS-00910", "p", "text")
        written.append(datetime.fromtimestamp(clock.now() / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        clock.advance(20 * 60)
    assert "2026-10-25 02:30:00" in log.read()
    assert [each.issued for each in events(Home(tmp_path), Wanted())] == written
