"""Profiles of managed processes: what Manager does with the groups that have one."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from processes import until
from service_client import RunningService, ServiceClient

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, state_of

pytestmark = pytest.mark.slow

PROFILES = "/config/types/ogg:managedProcessSettings/values/ogg:managedProcessSettings"
DESCRIPTIONS = "/config/types/ogg:configDataDescription/values/ogg:managedProcessSettings"


def add_pump(client: ServiceClient, name: str, **fields: Any) -> None:
    """Create an Extract that waits for a trail."""
    config = [f"EXTRACT {name}", "PASSTHRU", f"EXTTRAIL ./dirdat/{name[-2:]}", "TABLE *.*;"]
    source = {"name": "ea", "path": "./dirdat"}
    body = {"source": source, "config": config, "targets": [{"name": name[-2:]}], **fields}
    reply = client.post(f"/extracts/{name}", body)
    assert reply.status == 201, reply.text


def pid_of(service: RunningService, name: str) -> int:
    """The running process of an Extract, 0 if there is none."""
    state, entry = state_of(Home(service.home).process(name, GroupKind.EXTRACT))
    return entry.pid if entry is not None and state in ALIVE else 0


def kill(service: RunningService, name: str) -> int:
    killed = pid_of(service, name)
    os.kill(killed, signal.SIGKILL)
    return killed


def events(service: RunningService) -> str:
    return (service.home / "ggserr.log").read_text()


def test_a_killed_process_is_restarted_until_the_retries_are_used_up(
    client: ServiceClient, service: RunningService
) -> None:
    again = {"enabled": True, "delay": 0, "retries": 1, "window": 3600, "disableOnFailure": True}
    assert client.post(f"{PROFILES}:Once", {"autoRestart": again}).status == 201
    add_pump(client, "G1", managedProcessSettings="Once", status="running")
    killed = kill(service, "G1")
    until("Manager restarts G1", lambda: pid_of(service, "G1") not in (0, killed))
    assert "EXTRACT G1 is restarted automatically." in events(service)
    kill(service, "G1")
    until("G1 stays down", lambda: events(service).count("EXTRACT G1 is down (abended).") == 2)
    assert events(service).count("EXTRACT G1 is down (abended). It will be restarted in 0 seconds.") == 1
    assert client.get("/extracts/G1").response["status"] == "abended"
    assert client.patch("/extracts/G1", {"status": "running"}).status == 200
    killed = kill(service, "G1")
    until("a START allows another retry", lambda: pid_of(service, "G1") not in (0, killed))


def test_manager_starts_the_groups_whose_profile_starts_them(client: ServiceClient, service: RunningService) -> None:
    add_pump(client, "G2", managedProcessSettings={"autoStart": {"enabled": True}})
    add_pump(client, "G3", managedProcessSettings={"autoStart": {"enabled": True, "delay": 3600}})
    add_pump(client, "G4")
    service.run("STOP MANAGER !; START MANAGER")
    until("Manager starts G2", lambda: pid_of(service, "G2") != 0)
    assert [pid_of(service, name) for name in ("G3", "G4")] == [0, 0]


def test_a_new_group_has_the_default_profile_and_a_deleted_one_none(
    client: ServiceClient, service: RunningService
) -> None:
    assert client.post(f"{PROFILES}:Usual", {"autoRestart": {"enabled": False}}).status == 201
    assert client.post(f"{DESCRIPTIONS}:Usual", {"isDefault": True}).status == 201
    add_pump(client, "G5")
    assert client.get("/extracts/G5").response["managedProcessSettings"] == "ogg:managedProcessSettings:Usual"
    service.run("DELETE EXTRACT g5 !")
    service.run("ADD EXTRACT g5, EXTTRAILSOURCE ./dirdat/ea")
    assert client.get("/extracts/G5").response["managedProcessSettings"] == "ogg:managedProcessSettings:Default"


@pytest.mark.parametrize(
    ("settings", "named"),
    [("Unknown", "profile Unknown does not exist"), ({"autoRestart": {"retries": -1}}, "retries"), ({"x": 1}, "x")],
)
def test_a_profile_that_cannot_be_used_is_refused(client: ServiceClient, settings: Any, named: str) -> None:
    reply = client.post("/extracts/G6", {"source": {"name": "ea"}, "managedProcessSettings": settings})
    assert (reply.status, named in reply.text) == (400, True), reply.text
    assert client.get("/extracts/G6").status == 404


def test_what_has_no_effect_is_reported(client: ServiceClient) -> None:
    reply = client.post(f"{PROFILES}:Again", {"autoRestart": {"enabled": True, "onSuccess": True}})
    assert (reply.status, reply.codes) == (201, ["GGS-00920"])
