"""The service also listens on the PORT of mgr.prm."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_ggshell
from service_client import RunningService, ServiceClient, free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def manager_port(tmp_path: Path) -> int:
    """The port in the mgr.prm of a new home."""
    port = free_port()
    (tmp_path / "dirprm").mkdir()
    (tmp_path / "dirprm" / "mgr.prm").write_text(f"PORT {port}\nDYNAMICPORTLIST 7810-7820\n")
    return port


@pytest.fixture
def running(tmp_path: Path, manager_port: int) -> Iterator[RunningService]:
    found = RunningService(tmp_path)
    yield found
    found.close()


def answers(port: int, scheme: str = "http", **options: object) -> bool:
    return ServiceClient(f"{scheme}://127.0.0.1:{port}", "", **options).get("/version").status == 200


def listening_addresses(home: Path) -> set[str]:
    """The addresses, as the kernel writes them, on which the process of the service accepts connections."""
    pid = next(line.split()[-1] for line in shown(home, "INFO SERVICE").splitlines() if line.startswith("Pid"))
    inodes = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def shown(home: Path, statement: str) -> str:
    return run_ggshell("--home", home, "-c", statement).stdout


def test_both_ports_answer_and_no_other_is_opened(running: RunningService, manager_port: int) -> None:
    assert answers(running.port)
    assert answers(manager_port)
    assert listening_addresses(running.home) == {f"0100007F:{port:04X}" for port in (running.port, manager_port)}
    assert f"Manager port  {manager_port}\n" in running.run("INFO SERVICE")
    down = running.run("INFO MANAGER")
    assert "Manager is DOWN!" in down
    assert f"The service listens on ports {running.port} and {manager_port}." in down


def test_both_ports_show_the_same_certificate(tmp_path: Path, manager_port: int) -> None:
    service = RunningService(tmp_path, "")
    try:
        certificates = {ssl.get_server_certificate(("127.0.0.1", port)) for port in (service.port, manager_port)}
        assert len(certificates) == 1
        assert answers(manager_port, "https", verify=str(tmp_path / "dirwlt" / "service.crt"))
    finally:
        service.close()


def test_a_port_that_is_in_use_is_reported_and_the_service_runs(tmp_path: Path, manager_port: int) -> None:
    with socket.create_server(("127.0.0.1", manager_port)):
        service = RunningService(tmp_path)
    try:
        assert answers(service.port)
        assert "The service does not listen on the PORT of mgr.prm" in (tmp_path / "ggserr.log").read_text()
        assert f"Manager port  {manager_port} (not listening, see ggserr.log)" in service.run("INFO SERVICE")
        assert f"The service listens on port {service.port}." in service.run("INFO MANAGER")
        service.run("RESTART SERVICE")
        assert answers(manager_port)
    finally:
        service.close()


def test_a_changed_port_is_used_after_a_restart(running: RunningService, manager_port: int) -> None:
    other = free_port()
    (running.home / "dirprm" / "mgr.prm").write_text(f"PORT {other}\n")
    assert "settings in mgr.prm differ: RESTART SERVICE applies them" in running.run("INFO SERVICE")
    running.run("RESTART SERVICE")
    assert answers(other)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", manager_port))


def test_the_service_may_take_over_the_port_of_manager(running: RunningService, manager_port: int) -> None:
    file = running.home / "dirprm" / "service.prm"
    file.write_text(file.read_text().replace(str(running.port), str(manager_port)))
    running.run("RESTART SERVICE")
    assert answers(manager_port)
    assert "Manager port" not in running.run("INFO SERVICE")
