"""The home's key pair and self-signed certificate for TLS, in ``dirwlt``; clients recognize it by its fingerprint."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.clock import Clock, local_text
from ggshell.errors import StateError, StoreError
from ggshell.files import locked, write_atomically
from ggshell.home.home import Home

CERTIFICATE: Final = "dirwlt/service.crt"
KEY: Final = "dirwlt/service.key"
VALID_DAYS: Final = 3650
_UNREADABLE: Final = "GGS-00908"


class CertificateFacts(NamedTuple):
    """A certificate. Times are in microseconds since 1970; ``fingerprint``: SHA-256 in pairs of hexadecimal digits."""

    subject: str
    issuer: str
    serial: str
    not_before: int
    not_after: int
    fingerprint: str
    names: tuple[str, ...]


def ensure_certificate(home: Home, clock: Clock) -> tuple[Path, Path, bool]:
    """Return the files of the home's certificate and key, and whether they were made now. Raises DiskError."""
    certificate, key = home.root / CERTIFICATE, home.root / KEY
    if certificate.exists() and key.exists():
        return certificate, key, False
    with locked(home.lock_of_store("certificate"), "the certificate", wait=True):
        if certificate.exists() and key.exists():  # another process has made them in the meantime
            return certificate, key, False
        pem, secret = _self_signed(datetime.fromtimestamp(clock.now() / 1e6, UTC))
        write_atomically(key, secret, mode=0o600)
        write_atomically(certificate, pem, mode=0o644)
    return certificate, key, True


def _self_signed(now: datetime) -> tuple[bytes, bytes]:
    """Return a new certificate and its key in PEM format."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host[:64])])
    addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1")]
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost"), *addresses])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    signed = (
        builder.not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(serialization.Encoding.PEM), secret


def read_certificate(path: Path) -> CertificateFacts:
    """Return the facts of the first certificate in a file. Raises StoreError."""
    try:
        return certificate_facts(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it has no valid certificate in PEM format"
        raise StoreError(
            f"certificate {path} cannot be read: {reason}",
            code=_UNREADABLE,
            hint="correct CERTIFICATE, or restore the file",
        ) from error


def require_valid(certificate: Path, clock: Clock) -> None:
    """Raise StateError if a certificate has expired or is not valid yet, StoreError if it cannot be read."""
    facts, now = read_certificate(certificate), clock.now()
    if facts.not_before <= now <= facts.not_after:
        return
    problem = "has expired" if facts.not_after < now else f"is not valid before {local_text(facts.not_before)}"
    raise StateError(
        f"certificate {certificate} {problem}",
        code="GGS-00916",
        hint="replace it, or remove the self-signed one and its key, and START SERVICE creates a new one",
    )


def certificate_facts(pem: bytes) -> CertificateFacts:
    """Return the facts of the first certificate in a PEM text. Raises ValueError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    found = x509.load_pem_x509_certificate(pem)
    try:
        alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = tuple(str(each.value) for each in alternative)
    except x509.ExtensionNotFound:
        names = ()
    return CertificateFacts(
        found.subject.rfc4514_string(),
        found.issuer.rfc4514_string(),
        f"{found.serial_number:x}",
        int(found.not_valid_before_utc.timestamp() * 1e6),
        int(found.not_valid_after_utc.timestamp() * 1e6),
        fingerprint_of(found.public_bytes(Encoding.DER)),
        names,
    )


def fingerprint_of(der: bytes) -> str:
    """Return the SHA-256 fingerprint of a certificate in DER format."""
    digest = hashlib.sha256(der).hexdigest().upper()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def _reason(error: OSError) -> str:
    """What is wrong with a file of TLS, in words: OpenSSL names a reason like KEY_VALUES_MISMATCH."""
    name = getattr(error, "reason", None)
    if name == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    return name.replace("_", " ").lower() if name else error.strerror or str(error)


def _require_key(key: Path, certificate: Path) -> None:
    """Raise StoreError for a file without a private key: OpenSSL would only say that a PEM file is not valid."""
    try:
        if b"PRIVATE KEY-----" in key.read_bytes():
            return
        problem = f"{key} has no private key in PEM format"
    except OSError as error:
        problem = f"the key {key} cannot be read: {error.strerror}"
    raise StoreError(
        f"the certificate of the service cannot be used: {problem}",
        code=_UNREADABLE,
        hint="name the file of the key: CERTIFICATE file, KEY key_file"
        if key == certificate
        else "correct CERTIFICATE, KEY",
    )


def load_client_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Present a client certificate over connections with these settings. Raises StoreError if a file is not valid."""
    try:
        missing = next((each for each in (certificate, key) if not each.exists()), None)
        if missing is None:
            context.load_cert_chain(certificate, key, password=lambda: "")
            return
        reason = f"{missing} does not exist"
    except OSError as error:
        reason = _reason(error)
    raise StoreError(
        f"the client certificate {certificate} cannot be used: {reason}",
        hint="place the certificate and its private key in dirwlt, as NAME.crt and NAME.key in PEM format without a password",
    )


class _Told(ssl.SSLObject):
    """A connection that is refused during the handshake learns why.

    asyncio closes a connection at once when its handshake fails, without sending OpenSSL's alert. So a handshake that fails
    because of the client seems to want to read: asyncio sends the alert, and the error is raised when the client answers.
    """

    _refused: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._refused is not None:
            raise self._refused
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason not in _REFUSALS:
                raise
            self._refused = error
            raise ssl.SSLWantReadError("the alert is sent first") from error


_REFUSALS = frozenset({"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE", "UNSUPPORTED_PROTOCOL"})
"""OpenSSL's reasons to refuse a client that speaks TLS."""


def server_context(certificate: Path, key: Path, authority: Path | None, *, required: bool) -> ssl.SSLContext:
    """Return the TLS settings of a server: TLS 1.2 or newer. Raises StoreError if a file is not valid.

    ``authority``: the issuers of accepted client certificates; ``required``: clients must present one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslobject_class = _Told
    _require_key(key, certificate)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # otherwise OpenSSL asks at the terminal
        if authority is not None:
            context.load_verify_locations(authority)
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as error:
        reason = _reason(error)
        files = ", ".join(str(each) for each in (certificate, key, authority) if each is not None)
        raise StoreError(
            f"the certificate of the service cannot be used: {reason}",
            code=_UNREADABLE,
            where=files,
            hint="correct CERTIFICATE or CLIENTCA in dirprm/service.prm, or remove CERTIFICATE for a self-signed one",
        ) from error
    return context
