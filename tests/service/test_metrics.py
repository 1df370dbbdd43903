"""Metrics: what Prometheus and StatsD receive, and who may read it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from service_client import RunningService, ServiceClient, free_port

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


def test_an_address_that_other_machines_reach_needs_tls_and_credentials(tmp_path: Path) -> None:
    (tmp_path / "dirprm").mkdir()
    (tmp_path / "dirprm" / "service.prm").write_text(f"PORT {free_port()}\nADDRESS 0.0.0.0\nPLAINTEXT\n")
    refused = object.__new__(RunningService)
    refused.home = tmp_path
    assert "PLAINTEXT is not allowed with ADDRESS 0.0.0.0" in refused.run("START SERVICE", code=1)
