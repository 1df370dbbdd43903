"""RESTART SERVICE checks the new settings before it stops the service; INFO SERVICE shows those of the running process."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from service_client import RunningService, free_port

from ggshell.clock import SystemClock
from ggshell.home.certificate import ensure_certificate
from ggshell.home.home import Home

pytestmark = pytest.mark.slow
DIFFER = "settings in service.prm differ: RESTART SERVICE applies them"


@pytest.fixture
def configured(service: RunningService) -> Iterator[RunningService]:
    """A running service; its parameter file is restored afterwards."""
    file = service.home / "dirprm" / "service.prm"
    before = file.read_text()
    yield service
    file.write_text(before)


def configure(service: RunningService, text: str) -> None:
    (service.home / "dirprm" / "service.prm").write_text(text)


def answers(service: RunningService) -> bool:
    return service.client("").get("/version").status == 200


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("PORT {port}\nPLAINTEXT\nNOSUCH 7\n", "NOSUCH"),
        ("PORT {port}\nPLAINTEXT\nADDRESS 0.0.0.0\n", "PLAINTEXT is not allowed"),
        ("PORT {taken}\nPLAINTEXT\n", "cannot listen on"),
        ("PORT 0\nPLAINTEXT\n", "not in the range 1 to 65535"),
        ("PORT 99999\nPLAINTEXT\n", "not in the range 1 to 65535"),
        ("PORT {port}\nPLAINTEXT\nDEPLOYMENT 'a/b'\n", "not a valid DEPLOYMENT"),
        ("PORT {port}\nPLAINTEXT\nCLIENTCA ca.pem, REQUIRED\n", "only TLS has client certificates"),
        ("PORT {port}\nADDRESS 192.0.2.1\n", "cannot listen on 192.0.2.1:{port}"),
        ("PORT {port}\nCERTIFICATE dirwlt/none.crt\n", "No such file"),
        ("PORT {port}\nCERTIFICATE ggserr.log\n", "no valid certificate"),
    ],
)
def test_settings_that_the_service_cannot_start_with_leave_it_running(
    configured: RunningService, settings: str, named: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        configure(configured, settings.format(port=configured.port, taken=other.getsockname()[1]))
        said = configured.run("RESTART SERVICE", code=1)
    assert named.format(port=configured.port) in said
    assert "keeps running with its previous settings" in said
    assert answers(configured)
    shown = configured.run("INFO SERVICE")
    assert f"http://127.0.0.1:{configured.port}" in shown
    assert "service.prm" in shown


def test_a_key_with_a_passphrase_is_refused_without_asking(configured: RunningService) -> None:
    certificate, key, _ = ensure_certificate(Home(configured.home), SystemClock())
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = secret.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"correct-horse"))
    (configured.home / "locked.key").write_bytes(locked)
    configure(configured, f"PORT {configured.port}\nCERTIFICATE {certificate}, KEY locked.key\n")
    assert "cannot be used" in configured.run("RESTART SERVICE", code=1)
    assert answers(configured)


def test_the_service_is_stopped_and_shown_whatever_its_file_says(configured: RunningService) -> None:
    before = (configured.home / "dirprm" / "service.prm").read_text()
    configure(configured, "NOSUCH 7\n")
    assert "NOSUCH" in configured.run("INFO SERVICE")
    assert "Service stopped." in configured.run("STOP SERVICE")
    shown = configured.run("INFO SERVICE")
    assert ("STOPPED" in shown, "NOSUCH" in shown) == (True, True)
    configure(configured, before)
    configured.run("START SERVICE")
    assert answers(configured)


def test_changed_settings_are_announced_and_applied_by_restart(configured: RunningService) -> None:
    port = free_port()
    assert DIFFER not in configured.run("INFO SERVICE")
    former, configured.port = configured.port, port
    configure(configured, f"PORT {port}\nPLAINTEXT\nDEPLOYMENT South\nMETRICS OFF\n")
    for statement in ("INFO SERVICE", "START SERVICE"):
        assert DIFFER in configured.run(statement)
    shown = configured.run("INFO SERVICE")
    assert (f":{former}" in shown, "South" in shown, "OPEN" in shown) == (True, False, True)
    configured.run("RESTART SERVICE")
    assert answers(configured)
    shown = configured.run("INFO SERVICE")
    assert (f":{port}" in shown, "South" in shown, DIFFER in shown) == (True, True, False)
