"""TLS: the certificate that the service makes, own certificates, client certificates, and what is refused."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from authorities import Authority
from command_line import run_ggshell
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from service_client import PASSWORD, RunningService, ServiceClient, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningService]:
    """A service with its own self-signed certificate that accepts client certificates."""
    running = RunningService(tmp_path_factory.mktemp("home"), f"CLIENTCA {authority.file}\n")
    running.run("DELETE USER otto")
    running.run("ADD USER otto, ROLE OPERATOR, CERTIFICATE")
    yield running
    running.close()


def trusting(service: RunningService, user: str = "admin", **options: object) -> ServiceClient:
    """A client that trusts the certificate in the home."""
    return service.client(user, verify=str(service.home / "dirwlt" / "service.crt"), **options)


def test_a_client_that_trusts_the_homes_certificate_connects(secured: RunningService) -> None:
    assert trusting(secured).get("/version").status == 200
    assert (secured.home / "dirwlt" / "service.key").stat().st_mode & 0o777 == 0o600


def test_a_client_that_does_not_trust_it_refuses(secured: RunningService) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        secured.client().get("/version")


def test_the_printed_fingerprint_is_that_of_the_certificate(secured: RunningService) -> None:
    der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", secured.port)))
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    assert digest.finalize().hex(":").upper() in secured.run("INFO SERVICE")


def test_the_session_cookie_is_sent_over_tls_only(secured: RunningService) -> None:
    assert "Secure" in trusting(secured).get("/currentuser").headers["set-cookie"]


def test_a_client_certificate_signs_in_the_user_of_its_name(secured: RunningService, authority: Authority) -> None:
    reply = trusting(secured, "", cert=tuple(map(str, authority.issue("otto")))).get("/currentuser")
    assert (reply.response["user"], reply.response["role"]) == ("otto", "Operator")


def test_a_certificate_for_a_name_without_a_user_is_refused(secured: RunningService, authority: Authority) -> None:
    reply = trusting(secured, "", cert=tuple(map(str, authority.issue("nobody")))).get("/currentuser")
    assert (reply.status, "nobody" in reply.body["messages"][0]["title"]) == (401, True)


def test_a_certificate_with_the_name_of_a_user_with_a_password_is_refused(
    secured: RunningService, authority: Authority
) -> None:
    client = trusting(secured, "", cert=tuple(map(str, authority.issue("admin"))))
    reply = client.get("/currentuser")
    assert (reply.status, "does not sign in with a certificate" in reply.text) == (401, True)
    client.session.auth = ("admin", PASSWORD)
    assert client.get("/currentuser").response["user"] == "admin"


def test_a_user_with_a_certificate_gets_a_token(secured: RunningService, authority: Authority) -> None:
    client = trusting(secured, "", cert=tuple(map(str, authority.issue("otto"))))
    assert client.post("/authorization").response["tokenType"] == "Bearer"
    assert client.get("/authorization").status == 403


def test_a_certificate_of_another_authority_is_refused(secured: RunningService, tmp_path: Path) -> None:
    foreign = Authority(tmp_path).issue("otto")
    with pytest.raises(requests.exceptions.ConnectionError):
        trusting(secured, "", cert=tuple(map(str, foreign))).get("/currentuser")


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ("CERTIFICATE missing.crt", "missing.crt"),
        ("CERTIFICATE {expired}, KEY {expired_key}", "has expired"),
        ("CERTIFICATE {good}, KEY {expired_key}", "the key does not belong to the certificate"),
        ("CERTIFICATE {later}, KEY {later_key}", "is not valid before"),
        ("CERTIFICATE {good}", "good.crt has no private key in PEM format"),
        ("CERTIFICATE {good}, KEY none.key", "none.key cannot be read: No such file"),
        ("CERTIFICATE {good}, KEY dirprm", "dirprm cannot be read: Is a directory"),
        ("CLIENTCA dirprm/service.prm", "cannot be used"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_named(
    tmp_path: Path, authority: Authority, settings: str, refusal: str
) -> None:
    expired, expired_key = authority.issue("expired", days=-1)
    good, _ = authority.issue("good")
    later, later_key = authority.issue("later", days=30, begin=20)
    text = settings.format(expired=expired, expired_key=expired_key, good=good, later=later, later_key=later_key)
    (tmp_path / "dirprm").mkdir()
    (tmp_path / "dirprm" / "service.prm").write_text(f"PORT {free_port()}\n{text}\n")
    done = run_ggshell("--home", tmp_path, "-c", "START SERVICE")
    assert (done.returncode, refusal in done.stdout + done.stderr) == (1, True), done.stdout + done.stderr


def test_metrics_say_until_when_the_certificate_is_valid(secured: RunningService) -> None:
    """It can end while the service runs; clients refuse it then, and only a restart uses another one."""
    lines = trusting(secured).get("//metrics").text.splitlines()
    (shown,) = [line.split()[1] for line in lines if line.startswith("ggshell_certificate_end_time_seconds ")]
    found = x509.load_pem_x509_certificate((secured.home / "dirwlt" / "service.crt").read_bytes())
    assert float(shown) == found.not_valid_after_utc.timestamp()
