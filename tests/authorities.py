"""A certificate authority of the tests, and certificates of it for names."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime.now(datetime.UTC)


class Authority:
    """A certificate authority that issues certificates for names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self.file = folder / "authority.pem"
        self.file.write_bytes(_pem(_certificate(self._name, self._name, self._key, self._key, authority=True)))

    def issue(self, name: str, *, days: int = 1, begin: int = -10) -> tuple[Path, Path]:
        """The files of a certificate for a name and of its key; it begins and expires after so many days."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(_name(name), self._name, key, self._key, days=days, begin=begin)
        files = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        files[0].write_bytes(_pem(certificate))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    days: int = 1,
    begin: int = -10,
    authority: bool = False,
) -> x509.Certificate:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + datetime.timedelta(days=begin))
        .not_valid_after(NOW + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(signer, hashes.SHA256())
    )
