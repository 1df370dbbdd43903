"""The threads of the service that work in the background: an error is an event, and the work goes on."""

from __future__ import annotations

import queue
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from processes import until
from source_trees import PACKAGE, sources, text_of_file

from ggshell.clock import SystemClock
from ggshell.errors import DiskError, GgsError, StoreError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.parameters.service_parameters import ServiceParameters, StatsdSettings
from ggshell.service import recovery as recoveries
from ggshell.service.background import Background, Problems
from ggshell.service.recovery import Recovery
from ggshell.service.scheduler import TaskScheduler
from ggshell.service.state import ServiceState
from ggshell.service.statsd import DEPLOYMENT, StatsdSender

ERRORS: tuple[Exception, ...] = (StoreError("damaged"), OSError(11, "no more processes"), ValueError("not a number"))
KINDS = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def _state(home: Path, statsd: StatsdSettings | None = None) -> ServiceState:
    Home(home).ensure()
    return ServiceState(Home(home), ServiceParameters(statsd=statsd), SystemClock())


def _events(home: Path) -> str:
    log = home / "ggserr.log"
    return log.read_text() if log.exists() else ""


@KINDS
def test_no_error_ends_a_background_thread_and_each_is_reported_once(error: Exception) -> None:
    turns: queue.SimpleQueue[int] = queue.SimpleQueue()
    reported: list[GgsError] = []

    def turn() -> float | None:
        turns.put(1)
        raise error

    thread = Background("test", turn, reported.append, retry=0.0)
    thread.start()
    for _ in range(3):
        turns.get(timeout=60)
    thread.close()
    assert len(reported) == 1
    assert str(error) in str(reported[0])


def test_a_report_that_cannot_be_written_is_repeated_and_ends_nothing() -> None:
    reports: list[GgsError] = []

    def report(error: GgsError) -> None:
        reports.append(error)
        if len(reports) == 1:
            raise DiskError("no space left on device")

    problems = Problems("test", report)
    for _ in range(3):
        problems.tell("key", ValueError("x"))
    assert len(reports) == 2
    problems.over("key")
    problems.tell("key", ValueError("x"))
    assert len(reports) == 3


@KINDS
def test_a_task_whose_command_fails_in_an_unexpected_way_has_failed_and_runs_again(
    error: Exception, tmp_path: Path
) -> None:
    """Regression: it stayed in the state running, and nothing was reported."""
    clock, reported = SystemClock(), list[GgsError]()
    scheduler = TaskScheduler(Home(tmp_path), clock)

    def execute(name: str, task: dict[str, Any]) -> str:
        raise error

    scheduler.put("t", {"command": {"name": "report"}, "enabled": True, "owner": "jane"})
    scheduler.start(execute, reported.append)
    for number in (1, 2):
        scheduler.run_soon("t")
        until("the task has ended", lambda number=number: len(scheduler.state("t").get("history", [])) == number)  # type: ignore[misc]
        scheduler.wait()
    scheduler.close()
    state = scheduler.state("t")
    assert "running" not in state
    assert [each["status"] for each in state["history"]] == ["abended", "abended"]
    assert all(str(error) in each["output"] for each in state["history"])
    assert len(reported) == (0 if isinstance(error, GgsError) else 2)  # the others are reported by what executes them


@KINDS
def test_recovery_goes_on_after_any_error(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def changed(home: Home) -> list[str]:
        found.append("")
        if len(found) == 1:
            raise error
        return []

    monkeypatch.setattr(recoveries, "changed_objects", changed)
    state = _state(tmp_path)
    recovery = Recovery(state)
    recovery.start()
    until("the error is an event", lambda: str(error) in _events(tmp_path))
    state.undo_again.set()
    until("the next turn", lambda: len(found) == 2)
    recovery.close()
    state.close()


@pytest.mark.parametrize("port", ["abc", 70_000, None, -1, True])
def test_a_port_that_is_not_valid_is_an_event_and_other_servers_receive_metrics(port: object, tmp_path: Path) -> None:
    """Regression: it ended the thread that sends metrics."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        state = _state(tmp_path, StatsdSettings("127.0.0.1", server.getsockname()[1], interval=0.01))
        servers = [{"type": "statsd", "host": "metrics", "port": port}]
        Documents(state.home, DEPLOYMENT).put("Local", {"metrics": {"enabled": True, "servers": servers}})
        with closing(StatsdSender(state)):
            for _ in range(30):
                server.recv(65_536)
    state.close()
    assert _events(tmp_path).count(f"Metrics cannot be sent to metrics:{port}: the port is not a number") == 1


def test_a_damaged_document_with_servers_is_an_event(tmp_path: Path) -> None:
    """Regression: nothing said why no metrics were sent."""
    state = _state(tmp_path)
    documents = Documents(state.home, DEPLOYMENT)
    documents.put("Local", {})
    documents.path("Local").write_text("{")
    with closing(StatsdSender(state)):
        until("the error is an event", lambda: "Local.json cannot be read" in _events(tmp_path))
    state.close()


def test_a_server_that_a_client_sets_receives_metrics_at_once(tmp_path: Path) -> None:
    state = _state(tmp_path)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, closing(StatsdSender(state)):
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        servers = [{"type": "statsd", "host": "127.0.0.1", "port": server.getsockname()[1]}]
        Documents(state.home, DEPLOYMENT).put("Local", {"metrics": {"enabled": True, "servers": servers}})
        state.metrics_changed.set()
        assert b"deploymentName" in server.recv(65_536)
    state.close()


OTHERS = {
    "background.py": "the rule",
    "arriving_frames.py": "its errors end the connection",
    "scheduler.py": "one thread for each execution; every error is the result of the execution",
    "task_process.py": "ends a process with the service",
    "task_commands.py": "a timer that ends a process",
}


def test_the_threads_of_the_service_follow_one_rule() -> None:
    """Background threads are of the class Background; the others, with the reason, are those of the table."""
    files = [file for file in sources("ggshell") if file.is_relative_to(PACKAGE / "service")]
    found = {file.name for file in files if "threading.Thread(" in text_of_file(file) or "Timer(" in text_of_file(file)}
    assert found == OTHERS.keys()
