"""Manager restarts a service that failed, leaves one alone that was stopped, and starts one with AUTOSTART SERVICE."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from processes import until
from service_client import RunningService

from ggshell.home.process_file import ProcessState, read_process_file, state_of

pytestmark = pytest.mark.slow


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[RunningService]:
    """A running service and a running Manager."""
    running = RunningService(tmp_path)
    running.run("START MANAGER")
    yield running
    running.close()


def answers(service: RunningService) -> bool:
    try:
        return service.client("").get("/version").status == 200
    except requests.ConnectionError:
        return False


def test_a_killed_service_is_restarted(supervised: RunningService) -> None:
    entry = read_process_file(supervised.home / "dirpcs" / "SERVICE.pcs")
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until(
        "the service answers again",
        lambda: state_of(supervised.home / "dirpcs" / "SERVICE.pcs")[0] is ProcessState.RUNNING and answers(supervised),
    )
    assert "GGS-00917" in (supervised.home / "ggserr.log").read_text()


def test_a_stopped_service_stays_stopped_and_can_be_started_again(supervised: RunningService) -> None:
    assert "Service stopped." in supervised.run("STOP SERVICE")
    assert "STOPPED" in supervised.run("INFO SERVICE")
    assert "not running" in supervised.run("STOP SERVICE", code=1)
    supervised.run("START SERVICE")
    assert answers(supervised)


def test_autostart_starts_a_stopped_service_with_manager(tmp_path: Path) -> None:
    running = RunningService(tmp_path)
    try:
        running.run("STOP SERVICE")
        (tmp_path / "dirprm" / "mgr.prm").write_text("PORT 7809\nAUTOSTART SERVICE\nAUTOSTART ER *\n")
        running.run("START MANAGER")
        until("the service answers", lambda: answers(running))
        running.run("STOP SERVICE")
        running.run("STOP MANAGER !")
        running.run("START MANAGER")
        until("the service answers again", lambda: answers(running))
        assert "GGS-00917" not in (tmp_path / "ggserr.log").read_text()
    finally:
        running.close()


def test_autostart_is_tried_again_until_the_service_runs(tmp_path: Path) -> None:
    running = RunningService(tmp_path)
    parameters = tmp_path / "dirprm" / "service.prm"
    right = parameters.read_text()
    try:
        running.run("STOP SERVICE")
        parameters.write_text(f"{right}UNKNOWN\n")
        (tmp_path / "dirprm" / "mgr.prm").write_text("AUTOSTART SERVICE\n")
        running.run("START MANAGER")
        log = tmp_path / "ggserr.log"
        until("the start fails", lambda: "The service was not started" in log.read_text())
        parameters.write_text(right)
        until("the service answers", lambda: answers(running))
    finally:
        running.close()


def test_a_port_in_use_is_named_with_the_remedy(
    supervised: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("other")
    (home / "dirprm").mkdir()
    (home / "dirprm" / "service.prm").write_text(f"PORT {supervised.port}\nPLAINTEXT\n")
    other = object.__new__(RunningService)
    other.home = home
    said = other.run("START SERVICE", code=1)
    assert f"SERVICE ended immediately: the service cannot listen on 127.0.0.1:{supervised.port}" in said
    assert "\n  Hint: set another PORT or ADDRESS in dirprm/service.prm\n" in said
