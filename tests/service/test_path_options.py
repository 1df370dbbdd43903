"""OPTIONS of ALTER DISTPATH: Manager restarts a path by its own rule, its health is watched, and it waits at the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from processes import until, until_state
from service_client import RunningService, ServiceClient
from trail_kit import PRODUCER, read_all, small

from ggshell.clock import SystemClock
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind, PathSettings
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessState, state_of
from ggshell.parameters.process_profiles import profile_of
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter

pytestmark = pytest.mark.slow
DP1 = ("DP1", GroupKind.PATH)
ENDS = {"source": {"uri": "trail://h/services/v2/sources?trail=ea"}, "target": {"uri": "file://./dirdat/eb"}}


@pytest.fixture(autouse=True)
def no_path(service: RunningService) -> Iterator[None]:
    """Delete the path of a test."""
    yield
    if state_of(Home(service.home).process(*DP1))[0] in ALIVE:
        service.run("STOP DISTPATH dp1")
    service.run("DELETE DISTPATH dp1 !")


def settings(service: RunningService) -> PathSettings:
    return checkpoints.load(Home(service.home).checkpoint(*DP1)).options.path


def pid(service: RunningService) -> int:
    state, entry = state_of(Home(service.home).process(*DP1))
    return entry.pid if entry is not None and state in ALIVE else 0


def test_options_are_set_shown_and_changed(service: RunningService) -> None:
    run = service.run
    run("ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/eb")
    assert settings(service) == PathSettings()
    assert profile_of(Home(service.home), DP1).restart is None
    run("ALTER DISTPATH dp1 OPTIONS AUTORESTART RETRIES 3 DELAY 20 CRITICAL YES EOFDELAY 150")
    assert settings(service) == PathSettings(3, 20, True, 150)
    shown = run("INFO DISTPATH dp1, DETAIL")
    for line in ("Restart              3 times, each after 20 seconds", "Critical             Yes", "1.5 seconds"):
        assert line in shown
    rule = profile_of(Home(service.home), DP1).restart
    assert rule is not None
    assert (rule.retries, rule.wait, rule.gives_up) == (3, 20, True)
    run("ALTER DISTPATH dp1 OPTIONS CRITICAL NO")
    run("ALTER DISTPATH dp1 OPTIONS AUTORESTART RETRIES 0")
    assert settings(service) == PathSettings(eof_delay=150)
    assert "OPTIONS requires" in run("ALTER DISTPATH dp1 OPTIONS", code=1)
    for statement, reason in (("SEQLEN 6", "has nine digits"), ("FORMAT XML", "Use CANONICAL")):
        assert reason in run(f"ALTER DISTPATH dp1 TARGET {statement}", code=1)
    for wrong, most in (("RETRIES 10001", 10_000), ("RETRIES 1 DELAY 86401", 86_400)):
        assert f"is not in the range 0 to {most}" in run(f"ALTER DISTPATH dp1 OPTIONS AUTORESTART {wrong}", code=1)
    assert "is not in the range 1 to 2000" in run("ALTER DISTPATH dp1 TARGET SIZEMB 5000", code=3)
    for statement in ("SEQLEN 9", "FORMAT CANONICAL", "SIZEMB 2000"):
        assert "altered" in run(f"ALTER DISTPATH dp1 TARGET {statement}")


def test_the_service_sets_and_shows_options_and_keeps_no_others(client: ServiceClient, service: RunningService) -> None:
    options: dict[str, Any] = {
        "autoRestart": {"retries": 5, "delay": 7},
        "critical": True,
        "eofDelayCSecs": 50,
        "checkpointFrequency": 10,
        "network": {"appOptions": {"appFlushBytes": 1000}, "socketOptions": None},
    }
    reply = client.post("/sources/DP1", {**ENDS, "options": options})
    assert (reply.status, settings(service)) == (201, PathSettings(5, 7, True, 50))
    assert "checkpointFrequency, network in the options of a path has no effect" in reply.text
    kept = {name: options[name] for name in ("autoRestart", "critical", "eofDelayCSecs")}
    assert client.get("/sources/DP1").response["options"] == kept
    critical = client.get("/config/health").response["criticalResources"]
    assert {"name": "DP1", "type": "distPath", "status": "stopped", "healthy": False} in critical
    reply = client.patch("/sources/DP1", {"options": {"critical": False, "autoRestart": {"retries": 0}}})
    assert (reply.status, settings(service)) == (200, PathSettings(eof_delay=50))
    assert client.get("/sources/DP1").response["options"] == {"eofDelayCSecs": 50}
    for wrong in ({"critical": "yes"}, {"autoRestart": 3}, {"autoRestart": {"delay": 3}}, {"eofDelayCSecs": 7000}):
        assert client.patch("/sources/DP1", {"options": wrong}).status == 400
    assert settings(service) == PathSettings(eof_delay=50)


def test_the_service_sets_the_proxy_of_a_path(client: ServiceClient, service: RunningService) -> None:
    target = {"uri": "wss://h:1/services/v2/targets?trail=eb", "proxy": {"uri": "http://p:3128", "type": "http"}}
    assert client.post("/sources/DP1", {**ENDS, "target": target}).status == 201
    assert settings(service).proxy == "http://p:3128"
    target["proxy"] = {"uri": "http://q:8080", "csAlias": "pat"}
    assert client.patch("/sources/DP1", {"target": target}).status == 200
    assert settings(service) == PathSettings(proxy="http://q:8080", proxy_alias="pat")
    target["proxy"] = {"uri": "http://q:8081", "type": "socks5"}
    assert client.patch("/sources/DP1", {"target": target}).status == 200
    assert settings(service).proxy == "socks5://q:8081"
    for wrong in ({"uri": "socks5://q", "type": "http"}, {"uri": "ftp://q"}, {"type": "http"}):
        assert client.patch("/sources/DP1", {"target": {**target, "proxy": wrong}}).status == 400


def test_manager_restarts_a_path_as_often_as_its_options_say(service: RunningService) -> None:
    service.run("START MANAGER; ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/eb")
    service.run("ALTER DISTPATH dp1 OPTIONS AUTORESTART RETRIES 1; START DISTPATH dp1")
    first = pid(service)
    os.kill(first, signal.SIGKILL)
    until("Manager restarts the path", lambda: pid(service) not in (0, first))
    os.kill(pid(service), signal.SIGKILL)
    log = service.home / "ggserr.log"
    until("it gives up", lambda: log.read_text().count("DISTPATH DP1 is down (abended).") == 2)
    until_state(Home(service.home), *DP1, ProcessState.ABENDED)
    assert "could not record why it ended" in service.run("STATUS DISTPATH dp1")


def test_a_path_with_eofdelay_sends_later_and_loses_nothing(service: RunningService) -> None:
    read, written = (TrailName(service.home / "dirdat", each) for each in ("ea", "eb"))
    service.run("START MANAGER; ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/eb")
    service.run("ALTER DISTPATH dp1 OPTIONS EOFDELAY 30; START DISTPATH dp1")
    for csn in range(1, 4):
        with closing(TrailWriter.open(read, clock=SystemClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
            writer.write(small(csn))
            writer.flush()
        until("the rows are copied", lambda: written.sequences() != [] and read_all(written) == read_all(read))
    assert "At EOF" in service.run("LAG DISTPATH dp1")
