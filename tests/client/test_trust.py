"""Certificates of services: pinned on first use, changed, and issued by authorities."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_ggshell
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from remote_shell import RemoteShell
from service_client import RunningService, free_port

from ggshell.client.pins import Pins
from ggshell.errors import ProcessError, StateError, StoreError
from ggshell.home.certificate import read_certificate
from ggshell.network.service_url import parse_url
from ggshell.network.trust import Trust

DAY = datetime.timedelta(days=1)
Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def certificate(name: str, issuer: Pair | None = None, *, until: int = 10, host: str = "127.0.0.1") -> Pair:
    """A certificate that ends after a number of days: an authority without issuer, or a server's for a host."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuers, signing = (issuer[0].subject, issuer[1]) if issuer is not None else (subject, key)
    builder = x509.CertificateBuilder(issuers, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - 20 * DAY).not_valid_after(now + until * DAY)
    builder = builder.add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    if issuer is not None:
        alternative = x509.IPAddress(ipaddress.ip_address(host))
        builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer[1].public_key())
        builder = builder.add_extension(identifier, critical=False)
    else:
        usage = x509.KeyUsage(True, *[False] * 4, True, True, *[False] * 2)
        builder = builder.add_extension(usage, critical=True)
        identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identity, critical=False)
    return builder.sign(signing, hashes.SHA256()), key


def pem(pair: Pair) -> tuple[bytes, bytes]:
    """The certificate and the key of a pair in PEM format."""
    kind = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return pair[0].public_bytes(serialization.Encoding.PEM), pair[1].private_bytes(serialization.Encoding.PEM, *kind)


class TlsServer:
    """A server that only negotiates TLS."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        file = folder / f"{pair[0].serial_number}.pem"
        file.write_bytes(b"".join(pem(pair)))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(file)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                with self._context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(1)
            except OSError:
                connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def authority(tmp_path: Path) -> Pair:
    pair = certificate("our authority")
    (tmp_path / "authorities").mkdir()
    (tmp_path / "authorities" / "ours.pem").write_bytes(pem(pair)[0])
    return pair


@pytest.fixture
def servers() -> Iterator[list[TlsServer]]:
    found: list[TlsServer] = []
    yield found
    for each in found:
        each.close()


def opened(folder: Path, server: TlsServer, authorities: str = "", **options: object) -> Pins:
    """Connect to a server as CONNECT does; returns the pins."""
    pins, url = Pins(folder / "user"), parse_url(f"https://127.0.0.1:{server.port}")
    environment = {"OGG_CLIENT_TLS_CAPATH": authorities} if authorities else {}

    def handshake(context: ssl.SSLContext) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", server.port), 10)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    Trust(url, pins, environment, keep=pins.add, statement="CONNECT …", **options).open(handshake).close()  # type: ignore[arg-type]
    return pins


def test_a_certificate_of_a_trusted_authority_needs_no_pin(
    tmp_path: Path, authority: Pair, servers: list[TlsServer]
) -> None:
    servers.append(server := TlsServer(tmp_path, certificate("server", authority)))
    for place in (tmp_path / "authorities", tmp_path / "authorities" / "ours.pem"):
        assert opened(tmp_path, server, str(place)).find(f"127.0.0.1:{server.port}") is None
    with pytest.raises(ProcessError, match="is not known"):
        opened(tmp_path, server)


@pytest.mark.parametrize(("until", "host", "reason"), [(-1, "127.0.0.1", "expired"), (10, "10.0.0.1", "mismatch")])
def test_an_expired_or_another_hosts_certificate_of_an_authority_is_refused_in_any_case(
    tmp_path: Path, authority: Pair, servers: list[TlsServer], until: int, host: str, reason: str
) -> None:
    servers.append(server := TlsServer(tmp_path, certificate("server", authority, until=until, host=host)))
    for options in ({}, {"accept": True}, {"confirm": lambda _: True}):
        with pytest.raises(ProcessError, match=reason):
            opened(tmp_path, server, str(tmp_path / "authorities"), **options)


def test_a_certificate_that_is_not_known_is_confirmed_once(tmp_path: Path, servers: list[TlsServer]) -> None:
    pair = certificate("server")
    servers.append(server := TlsServer(tmp_path, pair))
    fingerprint = read_certificate(tmp_path / f"{pair[0].serial_number}.pem").fingerprint
    shown: list[str] = []
    with pytest.raises(StateError, match="not accepted"):
        opened(tmp_path, server, confirm=lambda text: bool(shown.append(text)))
    assert fingerprint in shown[0]
    pins = opened(tmp_path, server, confirm=lambda _: True)
    assert pins.find(f"127.0.0.1:{server.port}") == (fingerprint, f"{pins.path}:1")
    opened(tmp_path, server)


def test_a_changed_certificate_is_refused_with_the_line_of_the_pin(tmp_path: Path, servers: list[TlsServer]) -> None:
    servers.append(server := TlsServer(tmp_path, certificate("server")))
    pins = Pins(tmp_path / "user")
    pins.add("other:1", "AA")
    pins.add(f"127.0.0.1:{server.port}", ":".join(["AB"] * 32))
    for options in ({}, {"accept": True}, {"confirm": lambda _: True}):
        with pytest.raises(ProcessError, match="has changed: pinned is") as refused:
            opened(tmp_path, server, **options)
        assert refused.value.where == f"{pins.path}:2"


def test_authorities_that_cannot_be_read_are_reported(tmp_path: Path, servers: list[TlsServer]) -> None:
    servers.append(server := TlsServer(tmp_path, certificate("server")))
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(StoreError, match="OGG_CLIENT_TLS_CAPATH"):
        opened(tmp_path, server, str(tmp_path / "bad.pem"))


@pytest.mark.slow
def test_a_batch_pins_a_service_only_when_asked_to(secure: RunningService, secure_remote: RemoteShell) -> None:
    remote = secure_remote
    first = remote.run("-c", "STATUS MANAGER")
    statement = f"CONNECT {secure.url} AS admin !"
    assert (first.returncode, first.stdout) == (1, "")
    assert read_certificate(secure.home / "dirwlt" / "service.crt").fingerprint in first.stderr
    assert first.stderr.rstrip().endswith(statement)
    assert remote.start("-c", statement).returncode == 0
    assert remote.run("-c", "STATUS MANAGER").returncode == 0
    assert remote.pins.read_text().startswith(f"127.0.0.1:{secure.port} SHA256:")


@pytest.mark.slow
def test_a_new_certificate_of_a_pinned_service_is_refused(secure: RunningService, secure_remote: RemoteShell) -> None:
    remote = secure_remote
    assert remote.start("-c", f"CONNECT {secure.url} AS admin !").returncode == 0
    for name in ("service.crt", "service.key"):
        (secure.home / "dirwlt" / name).unlink()
    secure.run("RESTART SERVICE")
    for words in (
        ("--connect", secure.url, "--user", "admin", "-c", "INFO ALL"),
        ("-c", f"CONNECT {secure.url} AS admin !"),
    ):
        done = remote.start(*words)
        assert done.returncode == 1
        assert "has changed: pinned is" in done.stderr
        assert f"{remote.pins}:1" in done.stderr
    remote.pins.write_text("")
    assert remote.start("-c", f"CONNECT {secure.url} AS admin !").returncode == 0


@pytest.mark.slow
def test_a_service_that_does_not_speak_tls_or_does_not_answer_is_reported(
    secure: RunningService, tmp_path: Path
) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    plain = parse_url(secure.url)._replace(scheme="http")
    for url, reason in (
        (str(plain), "use https://"),
        (f"https://127.0.0.1:{free_port()}", "Connection refused"),
        (f"https://127.0.0.1:{silent.getsockname()[1]}", "did not answer in time"),
        ("https://no-such-host.invalid", "cannot be reached"),
        ("http://10.0.0.1", "does not encrypt"),
    ):
        done = RemoteShell(tmp_path, url).run("-c", "INFO ALL")
        assert done.returncode in (1, 2)
        assert reason in done.stderr
    silent.close()
    assert run_ggshell("--user", "x", "-c", "INFO ALL").returncode == 2
