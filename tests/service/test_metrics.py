"""Metrics: what Prometheus and StatsD receive, and who may read it."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest
from service_client import RunningService, ServiceClient, free_port

from ggshell.clock import SystemClock
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.parameters.service_parameters import ServiceParameters, StatsdSettings
from ggshell.service.state import ServiceState
from ggshell.service.statsd import DEPLOYMENT, StatsdSender

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def added(service: RunningService) -> RunningService:
    """A home with a stopped Extract, a pump and a Replicat."""
    service.run("ADD EXTRACT ext1, SOURCEISTABLE")
    service.run("ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea")
    service.run("ADD EXTTRAIL ./dirdat/eb, EXTRACT pump1, MEGABYTES 50")
    service.run("ADD REPLICAT rep1, EXTTRAIL ./dirdat/eb, NODBCHECKPOINT")
    return service


def test_groups_are_reported_with_state_and_positions(added: RunningService, client: ServiceClient) -> None:
    lines = client.get("//metrics").text.splitlines()
    assert 'ggshell_group_up{group="EXT1",type="extract"} 0.0' in lines
    assert 'ggshell_group_state{group="REP1",state="stopped",type="replicat"} 1.0' in lines
    assert 'ggshell_trail_written_bytes_total{group="PUMP1",trail="./dirdat/eb",type="extract"} 0.0' in lines
    assert "ggshell_manager_up 0.0" in lines


@pytest.mark.parametrize(
    ("setting", "user", "token", "status"),
    [
        ("METRICS OPEN", "", "", 200),
        ("METRICS OFF", "admin", "", 404),
        ("METRICS USERS", "", "", 401),
        ("METRICS USERS", "uma", "", 200),
        ("METRICS TOKEN abc-123-def-456-7", "", "abc-123-def-456-7", 200),
        ("METRICS TOKEN abc-123-def-456-7", "", "wrong", 401),
        ("METRICS TOKEN abc-123-def-456-7", "uma", "", 200),
    ],
)
def test_only_those_whom_metrics_names_can_read_them(
    service: RunningService, setting: str, user: str, token: str, status: int
) -> None:
    (service.home / "dirprm" / "service.prm").write_text(f"PORT {service.port}\nPLAINTEXT\n{setting}\n")
    service.run("RESTART SERVICE")
    options = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    answer = service.client(user).get("//metrics", **options)
    assert answer.status == status
    assert ("METRICS TOKEN" in answer.text) == ("TOKEN" in setting and status == 401 and bool(token))


def test_statsd_receives_gauges_with_tags(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        port = server.getsockname()[1]
        running = RunningService(tmp_path, f"PLAINTEXT\nDEPLOYMENT north\nSTATSD 127.0.0.1, PORT {port}, INTERVAL 1S\n")
        try:
            received = server.recv(65_536).decode()
        finally:
            running.close()
    assert "ggshell.manager_up:0|g|#deploymentName:north" in received.splitlines()


def test_a_statsd_server_that_cannot_be_reached_is_reported_once(tmp_path: Path) -> None:
    """Regression: two such servers were reported in turns, at each interval."""
    home = Home(tmp_path)
    home.ensure()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        own = StatsdSettings("127.0.0.1", server.getsockname()[1], interval=0.01)
        state = ServiceState(home, ServiceParameters(statsd=own), SystemClock())
        unusable = [{"type": "statsd", "host": f"127.0.0.{number}", "port": 0} for number in (1, 2)]
        Documents(home, DEPLOYMENT).put("Local", {"metrics": {"enabled": True, "servers": unusable}})
        home.event_log.mkdir()  # the log cannot be written, which must not end the thread
        sender = StatsdSender(state)
        for _ in range(3):
            server.recv(65_536)
        home.event_log.rmdir()
        with closing(sender):
            for _ in range(20):
                server.recv(65_536)
    state.close()
    assert home.event_log.read_text().count("Metrics cannot be sent") == len(unusable)


def test_an_address_that_other_machines_reach_needs_tls_and_credentials(tmp_path: Path) -> None:
    (tmp_path / "dirprm").mkdir()
    (tmp_path / "dirprm" / "service.prm").write_text(f"PORT {free_port()}\nADDRESS 0.0.0.0\nPLAINTEXT\n")
    refused = object.__new__(RunningService)
    refused.home = tmp_path
    assert "PLAINTEXT is not allowed with ADDRESS 0.0.0.0" in refused.run("START SERVICE", code=1)
