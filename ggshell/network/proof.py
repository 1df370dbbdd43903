"""Proof of a home's identity: its certificate's key signs the challenge of the home that it connects to.

A home *dials* the service of another home, to send a trail or to read one. Two proofs are needed.

Who answers: TLS shows the certificate of the service, and ``network.trust`` compares it with the peer's fingerprint, or has an
authority verify it. Nothing is sent before that.

Who dials: the answering service sends a challenge with a nonce and the fingerprint of its own home. The dialing home
signs both, together with what it asks for (to read or to write, the trail, its id, the group). The service verifies the
signature over its own fingerprint, regardless of what the signer saw, and finds the signer among its peers. The nonce
makes the proof valid once.

The fingerprint in the signed text stops a peer that relays: it dials a third home, passes that home's challenge on to the home
that dials it, and could use the answer there. The dialing home therefore signs only for the home that must answer at the
address that it dialed (``ExpectedHome``). A signature for the relaying peer is of no use in the third home, and one for the
third home is not made. Which home must answer:

- The peer that has the dialed address (ADD PEER … ADDRESS). A reverse proxy in front of it has another certificate, which
  PROXY names; the challenge then comes from the home itself. A proxy that is not named looks like a peer
  that relays, even if an authority issued its certificate: the authority says whose host it is, not which home answers there.
- Without such a peer, the home whose certificate TLS has shown: the service itself answers, without an intermediary.
- Without TLS (only on this machine) and without such a peer, the dialing home cannot know. The signed text states this, and
  only a service that itself works without TLS accepts it.

A user or a client certificate (AUTHENTICATION) replaces the second proof. A home that knows which home must answer signs
nevertheless: its trails are then recognized as its own, whether it signs in or is a peer.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.errors import ProcessError, StoreError, UsageError
from ggshell.home.certificate import ensure_certificate, fingerprint_of
from ggshell.home.home import Home
from ggshell.home.peers import Peer, parse_fingerprint
from ggshell.network.frames import PROTOCOL
from ggshell.network.opening import Asked, Challenge
from ggshell.network.proven import UNKNOWN_SENDER
from ggshell.parameters.loading import load_service

OTHER_HOME = "GGS-00963"
"""The code of a service that belongs to another home than the one that must answer at its address."""


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
                hint="correct CERTIFICATE in dirprm/service.prm, or remove both files: START SERVICE creates them again",
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


def signed_text(asked: Asked, challenge: Challenge) -> str:
    """Return the text that a dialing home signs: what it asks for, of which home, and the nonce."""
    names = (asked.trail, asked.home, asked.group)
    return "\n".join((PROTOCOL, challenge.receiver, challenge.nonce, asked.purpose, *names))


class ExpectedHome(NamedTuple):
    """The home that must answer at a dialed address. ``place``: host and port.

    ``fingerprint``: that of the home, empty without TLS if no peer has the address. ``certificate``: the fingerprint that TLS
    has shown. ``peer``: the peer with the address, or None.
    """

    place: str = ""
    fingerprint: str = ""
    certificate: str = ""
    peer: Peer | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether any home may answer."""
        return not self.fingerprint

    def require(self, announced: str) -> None:
        """Raise ProcessError (GGS-00963) unless the service is that of the expected home, by what it says about itself."""
        try:
            found = parse_fingerprint(announced)
        except UsageError as error:
            raise ProcessError(f"the service at {self.place} did not identify its home", code=OTHER_HOME) from error
        if self.is_unknown or found == self.fingerprint:
            return
        expected, change = self._difference(found)
        raise ProcessError(
            f"the service at {self.place} belongs to the home with the fingerprint {found}, but {expected}:"
            " a reverse proxy, or a home that forwards the connection",
            code=OTHER_HOME,
            hint=f"if it is a reverse proxy, compare the fingerprint with INFO PEER in the other home, then run: {change}",
        )

    def _difference(self, found: str) -> tuple[str, str]:
        """Return which home was expected instead of the one with this fingerprint, and the statement that expects it."""
        if self.peer is None:
            change = f"ADD PEER {peer_name(self.place)}, ADDRESS {self.place}, FINGERPRINT {found}, PROXY AUTHORITY"
            return f"its certificate has {self.certificate}", change
        proxy = f", PROXY {self.certificate}" if self.certificate == self.fingerprint else ""
        change = f"ALTER PEER {self.peer.name}, FINGERPRINT {found}{proxy}"
        return f"peer {self.peer.name} has {self.fingerprint}", change


def peer_name(place: str) -> str:
    """Return a name for the peer at a host and port."""
    return place.rpartition(":")[0].strip("[]").replace(":", "-")


def home_key(home: Home, clock: Clock) -> HomeKey:
    """Return the key that other homes know this home by; it is made if there is none. Raises StoreError, DiskError."""
    settings = load_service(home.parameters("service"))
    if settings.certificate:
        return HomeKey(home.resolve(settings.certificate), home.resolve(settings.key))
    certificate, key, _ = ensure_certificate(home, clock)
    return HomeKey(certificate, key)
