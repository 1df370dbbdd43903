"""Proof of a home's identity: its certificate's key signs the receiver's challenge. Works through a reverse proxy too."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.errors import ProcessError, StoreError
from ggshell.home.certificate import ensure_certificate, fingerprint_of
from ggshell.home.home import Home
from ggshell.parameters.loading import load_service

UNKNOWN_SENDER = "GGS-00951"
"""The code of a sender that is not a peer, or cannot prove who it is."""


class HomeKey(NamedTuple):
    """The files of a home's certificate and of its key."""

    certificate: Path
    key: Path

    def proof(self, text: str) -> tuple[str, str]:
        """Return the certificate (DER) and the signature of a text, in Base64. Raises StoreError."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

        try:
            key = serialization.load_pem_private_key(self.key.read_bytes(), None)
            found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not valid"
            raise StoreError(
                f"the certificate {self.certificate} or its key {self.key} cannot be read: {reason}",
                hint="correct CERTIFICATE in dirprm/service.prm, or remove both files: START SERVICE makes them again",
            ) from error
        if isinstance(key, ec.EllipticCurvePrivateKey):
            signature = key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPrivateKey):
            signature = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            raise StoreError(f"the key {self.key} is neither an RSA nor an elliptic curve key")
        der = found.public_bytes(serialization.Encoding.DER)
        return base64.b64encode(der).decode(), base64.b64encode(signature).decode()


def proven_fingerprint(certificate: str, signature: str, text: str) -> str:
    """Return the fingerprint of the certificate whose key signed a text.

    Raises ProcessError (GGS-00951) if the signature is not valid, or the certificate cannot be read.
    """
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    try:
        der = base64.b64decode(certificate, validate=True)
        signed = base64.b64decode(signature, validate=True)
        key = x509.load_der_x509_certificate(der).public_key()
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signed, text.encode(), ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signed, text.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            raise ProcessError(
                "the sender's certificate has neither an RSA nor an elliptic curve key", code=UNKNOWN_SENDER
            )
    except (binascii.Error, ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm) as error:
        raise ProcessError("the sender could not prove that its certificate is its own", code=UNKNOWN_SENDER) from error
    return fingerprint_of(der)


def signed_text(nonce: str, trail: str, home: str, group: str) -> str:
    """Return the text that a sender signs: what it asks for, and the receiver's nonce."""
    return "\n".join(("ggshell-trail-1", nonce, trail, home, group))


def home_key(home: Home, clock: Clock) -> HomeKey:
    """Return the key that other homes know this home by; it is made if there is none. Raises StoreError, DiskError."""
    settings = load_service(home.parameters("service"))
    if settings.certificate:
        return HomeKey(home.resolve(settings.certificate), home.resolve(settings.key))
    certificate, key, _ = ensure_certificate(home, clock)
    return HomeKey(certificate, key)
