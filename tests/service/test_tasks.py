"""Scheduled tasks: over HTTP, and the scheduler with a clock that the test moves."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from processes import until
from service_client import PASSWORD, RunningService, ServiceClient

from ggshell.clock import FakeClock
from ggshell.errors import GgsError, NotFoundError, StoreError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.service.scheduler import MOST_AT_ONCE, Schedule, TaskScheduler, parse_schedule, timed_out

HOURLY = {"every": {"units": "hours", "value": 1}}
REPORT = {"name": "report", "reportType": "lag", "thresholds": [{"type": "critical", "units": "seconds", "value": 5}]}
HOUR = 3600


class Ran:
    """A scheduler on a clock, and the commands that it has carried out."""

    def __init__(self, home: Path) -> None:
        self.home = Home(home)
        self.clock = FakeClock()
        self.done: list[str] = []
        self.errors: list[GgsError] = []
        self.restart()

    def restart(self) -> None:
        self.scheduler = TaskScheduler(self.home, self.clock)

    def execute(self, name: str, task: dict[str, Any]) -> str:
        command = task["command"]["name"]
        if command == "fail":
            raise NotFoundError("EXTRACT X does not exist.")
        if command == "hang":
            raise timed_out(5)
        self.done.append(f"{command} by {task['owner']}")
        return f"{command} done, PASSWORD secret"

    def after(self, seconds: float) -> list[str]:
        """Move the clock, run what is due, and return the commands carried out."""
        self.done.clear()
        self.clock.advance(seconds)
        try:
            self.scheduler.run_due(self.execute)
        finally:
            self.scheduler.wait()
        return list(self.done)

    def history(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.scheduler.state(name).get("history", [])
        return found


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    return Ran(tmp_path)


def task(schedule: object = None, **fields: Any) -> dict[str, Any]:
    found = {"command": {"name": "report"}, "enabled": True, "owner": "jane", **fields}
    return {**found, "schedule": schedule} if schedule is not None else found


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        (HOURLY, Schedule(every=HOUR * 1_000_000)),
        ({"every": {"units": "weeks", "value": 2}}, Schedule(every=14 * 24 * HOUR * 1_000_000)),
        ({"once": "1970-01-01T00:00:01Z"}, Schedule(once=1_000_000)),
        ({"once": {"at": "1970-01-01T01:00:00+01:00"}}, Schedule()),
    ],
)
def test_a_schedule_is_read(schedule: dict[str, Any], wanted: Schedule) -> None:
    assert parse_schedule(schedule) == wanted


@pytest.mark.parametrize(
    "schedule",
    [
        {},
        {"once": "tomorrow"},
        {"once": None},
        {"every": {"units": "hours", "value": 0}},
        {"every": {"units": "hours", "value": 10**30}},
        {"every": {"units": "hours", "value": True}},
        {"every": {"units": "years", "value": 1}},
        {"every": {"units": ["hours"], "value": 1}},
        {"every": 5},
        {**HOURLY, "once": "2030-01-01T00:00:00Z"},
    ],
)
def test_a_schedule_that_is_not_valid_is_refused(schedule: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_schedule(schedule)


def test_a_regular_task_runs_at_each_of_its_times(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY))
    assert [ran.after(HOUR - 1), ran.after(1), ran.after(1), ran.after(HOUR)] == [
        [],
        ["report by jane"],
        [],
        ["report by jane"],
    ]
    assert [each["status"] for each in ran.history("t")] == ["stopped", "stopped"]


def test_times_that_passed_while_the_service_was_down_are_made_up_once(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY))
    start = ran.clock.now()
    ran.restart()
    assert ran.after(5.5 * HOUR) == ["report by jane"]
    assert ran.scheduler.state("t")["next"] == start + 6 * HOUR * 1_000_000


def test_a_task_with_one_time_runs_once(ran: Ran) -> None:
    ran.scheduler.put("t", task({"once": "2023-11-14T23:00:00Z"}))
    assert [len(ran.after(HOUR)), len(ran.after(HOUR)), len(ran.after(HOUR))] == [1, 0, 0]
    ran.scheduler.put("t", task({"once": "2023-11-14T23:00:00Z"}, description="other"))
    assert ran.after(0) == []


def test_a_disabled_task_runs_only_when_asked(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY, enabled=False))
    assert ran.after(10 * HOUR) == []
    ran.scheduler.run_soon("t")
    assert ran.after(0) == ["report by jane"]
    ran.scheduler.put("t", task(HOURLY, enabled=True))
    assert [ran.after(0), ran.after(HOUR)] == [[], ["report by jane"]]


def test_a_failure_is_in_the_history_which_keeps_the_newest_without_passwords(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY, command={"name": "fail"}, maxHistory=2))
    for _ in range(3):
        ran.after(HOUR)
    ran.scheduler.put("t", task(HOURLY, maxHistory=2))
    ran.after(HOUR)
    assert [(each["status"], each["exitCode"]) for each in ran.history("t")] == [("abended", 1), ("stopped", 0)]
    assert "EXTRACT X does not exist" in ran.history("t")[0]["output"]
    assert "secret" not in ran.history("t")[1]["output"]


def test_an_execution_that_a_crash_interrupted_is_recorded(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY))
    Documents(ran.home, "taskState").put("t", {"running": True, "began": ran.clock.now()})
    ran.restart()
    ran.scheduler.start(ran.execute, ran.errors.append)
    ran.scheduler.close()
    assert [each["status"] for each in ran.history("t")] == ["killed"]


def test_a_damaged_document_does_not_stop_other_tasks(ran: Ran) -> None:
    ran.scheduler.put("a", task(HOURLY))
    ran.scheduler.put("b", task(HOURLY))
    (ran.home.root / "dirdb" / "service" / "taskState" / "a.json").write_text("{")
    with pytest.raises(StoreError):
        ran.after(HOUR)
    assert ran.done == ["report by jane"]


def test_a_deleted_task_leaves_nothing(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY))

    def deleting(name: str, task: dict[str, Any]) -> str:
        ran.scheduler.delete("t")
        return ""

    ran.clock.advance(HOUR)
    ran.scheduler.run_due(deleting)
    ran.scheduler.wait()
    assert list((ran.home.root / "dirdb" / "service").rglob("*.json")) == []


def test_tasks_run_side_by_side_up_to_a_limit_and_each_once(ran: Ran) -> None:
    names = [f"t{number}" for number in range(MOST_AT_ONCE + 1)]
    for name in names:
        ran.scheduler.put(name, task(HOURLY))
    together, go_on = Barrier(MOST_AT_ONCE + 1), Event()

    def waiting(name: str, task: dict[str, Any]) -> str:
        ran.done.append(name)
        if name != names[-1]:
            together.wait(60)
        go_on.wait(60)
        return ""

    ran.clock.advance(HOUR)
    ran.scheduler.run_due(waiting)
    together.wait(60)  # all but one run at the same time
    ran.clock.advance(HOUR)
    ran.scheduler.run_due(waiting)  # those that run do not begin again
    assert sorted(ran.done) == names[:-1]
    go_on.set()
    ran.scheduler.wait()
    ran.scheduler.run_due(ran.execute)
    ran.scheduler.wait()
    assert len(ran.history(names[-1])) == 1  # it has waited longest, so it begins first
    ran.scheduler.run_due(ran.execute)  # there may have been no place for the last one of the others
    ran.scheduler.wait()
    assert [len(ran.history(name)) for name in names] == [2] * MOST_AT_ONCE + [1]


AGAIN = {"enabled": True, "delay": 10, "retries": 2, "window": 3600, "disableOnFailure": True}


def test_a_task_that_fails_is_restarted_and_then_disabled(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY, command={"name": "fail"}, restart=AGAIN, maxHistory=9))
    runs = []
    for seconds in (HOUR, 9, 1, 10, 10, 2 * HOUR):
        ran.after(seconds)
        runs.append(len(ran.history("t")))
    assert runs == [1, 1, 2, 3, 3, 3]
    assert (ran.scheduler.tasks.get("t")["enabled"], ran.scheduler.state("t")["next"]) == (False, None)
    ran.scheduler.put("t", task(HOURLY, restart=AGAIN))
    assert ran.after(HOUR) == ["report by jane"]


@pytest.mark.parametrize(
    ("name", "restart", "wanted"),
    [
        ("report", AGAIN, [1, 1, 1, 1]),
        ("report", {**AGAIN, "onSuccess": True}, [1, 2, 3, 3]),
        ("fail", {**AGAIN, "enabled": False}, [1, 1, 1, 1]),
        ("fail", {**AGAIN, "window": 10}, [1, 2, 3, 4]),  # the count begins again with each window
        ("hang", {**AGAIN, "retries": 1}, [1, 2, 2, 2]),
    ],
)
def test_restarts_depend_on_the_result_and_the_window(
    ran: Ran, name: str, restart: dict[str, Any], wanted: list[int]
) -> None:
    schedule = {"once": "2023-11-14T23:00:00Z"}
    ran.scheduler.put("t", task(schedule, command={"name": name}, restart=restart))
    found = []
    for seconds in (HOUR, 10, 10, 10):
        ran.after(seconds)
        found.append(len(ran.history("t")))
    assert found == wanted


def test_a_timeout_is_in_the_history(ran: Ran) -> None:
    ran.scheduler.put("t", task(HOURLY, command={"name": "hang"}))
    ran.after(HOUR)
    (found,) = ran.history("t")
    assert (found["status"], found["killed"], "5 seconds" in found["output"]) == ("killed", True, True)


@pytest.mark.slow
def test_a_command_that_takes_longer_than_its_timeout_is_ended(service: RunningService, client: ServiceClient) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    silent.settimeout(60)
    userid = f"postgresql://jane@127.0.0.1:{silent.getsockname()[1]}/x"
    client.post("/credentials/Away/silent", {"userid": userid, "password": PASSWORD})
    command = {"name": "report", "reportType": "tables", "credentials": {"domain": "Away", "alias": "silent"}}
    assert client.post("/tasks/hanging", {"command": command, "timeout": 2, "status": "running"}).codes == []
    history: Callable[[], Any] = lambda: client.get("/tasks/hanging/info/history").response["history"]  # noqa: E731
    until("the command is ended", lambda: bool(history()))
    silent.close()
    assert (history()[0]["status"], history()[0]["killed"]) == ("killed", True), history()
    assert "task hanging of admin: the command took longer than 2 seconds" in (service.home / "ggserr.log").read_text()
    assert client.patch("/tasks/hanging", {"command": REPORT, "timeout": 60, "status": "running"}).status == 200
    until("a command within its timeout ends by itself", lambda: len(history()) == 2)
    assert history()[0]["status"] == "stopped", history()
    assert client.delete("/tasks/hanging").status == 200


@pytest.mark.slow
def test_a_failure_in_a_process_of_its_own_is_that_of_the_command(client: ServiceClient) -> None:
    body = {"command": {"name": "start", "processName": "NOSUCH"}, "timeout": 60, "status": "running"}
    assert client.post("/tasks/failing", body).status == 201
    history: Callable[[], Any] = lambda: client.get("/tasks/failing/info/history").response["history"]  # noqa: E731
    until("the command fails", lambda: bool(history()))
    assert (history()[0]["status"], "NOSUCH" in history()[0]["output"]) == ("abended", True)
    assert client.delete("/tasks/failing").status == 200


@pytest.mark.slow
def test_a_task_is_created_changed_and_deleted(client: ServiceClient) -> None:
    body = {"description": "Check lag", "enabled": False, "schedule": HOURLY, "command": REPORT}
    assert client.post("/tasks/lag", body).status == 201
    assert client.post("/tasks/lag", body).status == 409
    shown = client.get("/tasks/lag").response
    assert {**shown, **body} == shown
    assert "owner" not in shown
    assert client.patch("/tasks/lag", {"enabled": True}).status == 200
    assert "next" in client.get("/tasks/lag/info/status").response
    assert [each["name"] for each in client.get("/tasks").response["items"]] == ["lag"]
    assert [each["name"] for each in client.get("/tasks/lag/info").response["items"]] == ["history", "status"]
    restart = {"enabled": True, "delay": 0, "retries": 0, "disableOnFailure": False}
    assert client.patch("/tasks/lag", {"timeout": 5, "restart": restart}).codes == []
    assert {**client.get("/tasks/lag").response["restart"], **restart} == client.get("/tasks/lag").response["restart"]
    assert client.delete("/tasks/lag").status == 200
    for path in ("/tasks/lag", "/tasks/lag/info", "/tasks/lag/info/history", "/tasks/lag/info/status"):
        assert client.get(path).status == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": {"name": 7}},
        {"command": REPORT, "schedule": {}},
        {"command": REPORT, "maxHistory": 0},
        {"command": REPORT, "status": "sleeping"},
        {"command": REPORT, "colour": 1},
    ],
)
def test_a_task_that_is_not_valid_is_refused(client: ServiceClient, body: dict[str, Any]) -> None:
    assert client.post("/tasks/bad", body).status == 400
    assert client.get("/tasks/bad").status == 404
    assert client.post("/tasks/a%20b", {"command": REPORT}).status == 400


@pytest.mark.slow
def test_the_service_runs_a_task_at_its_time_in_the_name_of_its_creator(service: RunningService) -> None:
    client = service.client("jane")
    assert client.post("/tasks/soon", {"command": REPORT, "schedule": {"once": "2020-01-01T00:00:00Z"}}).status == 201
    history: Callable[[], Any] = lambda: client.get("/tasks/soon/info/history").response["history"]  # noqa: E731
    until("the task runs", lambda: bool(history()))
    assert (history()[0]["status"], history()[0]["exitCode"]) == ("stopped", 0)
    assert client.patch("/tasks/soon", {"status": "running"}).status == 200
    until("the task runs again", lambda: len(history()) == 2)
    assert client.get("/tasks/soon").response["status"] == "stopped"


@pytest.mark.slow
def test_a_failure_is_logged_with_the_name_of_the_task(service: RunningService, client: ServiceClient) -> None:
    command = {"name": "start", "processName": "NOSUCH"}
    schedule = {"once": "2020-01-01T00:00:00Z"}
    assert client.post("/tasks/nightly", {"command": command, "schedule": schedule}).status == 201
    log = service.home / "ggserr.log"
    until("the failure is logged", lambda: "task nightly of admin: " in log.read_text())
    assert client.delete("/tasks/nightly").status == 200


@pytest.mark.slow
def test_no_command_outlives_the_service(service: RunningService, client: ServiceClient) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    silent.settimeout(60)
    userid = f"postgresql://jane@127.0.0.1:{silent.getsockname()[1]}/x"
    client.post("/credentials/Away/quiet", {"userid": userid, "password": PASSWORD})
    command = {"name": "report", "reportType": "tables", "credentials": {"domain": "Away", "alias": "quiet"}}
    program = [sys.executable, "-P", "-m", "ggshell.service.task_process", str(service.home)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write(json.dumps({"command": command, "owner": "admin"}).encode() + b"\n")
        child.stdin.flush()
        waiting = silent.accept()[0]
        child.stdin.close()
        assert child.wait(20) == 1
        waiting.close()
    silent.close()
