"""Trust in a service's certificate: pinned, as with ssh, or issued by a trusted authority.

The order: a pinned certificate must be the one that is presented. Without a pin, an authority of OGG_CLIENT_TLS_CAPATH or of
the system must have issued it; a certificate of such an authority that has expired or belongs to another host is refused.
Any other certificate is pinned after the user has confirmed its fingerprint. A shell pins the services that it connects to; a
home pins its peers (ADD PEER).
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ggshell.errors import ProcessError, StateError, StoreError
from ggshell.home.certificate import fingerprint_of
from ggshell.network.service_url import ServiceUrl

AUTHORITIES: Final = "OGG_CLIENT_TLS_CAPATH"
_ENDINGS: Final = frozenset({".pem", ".crt", ".cer"})
"""The files of a folder of authorities."""
_UNKNOWN_ISSUER: Final = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's results of the verification that mean: no trusted authority issued the certificate."""
_EXPIRED: Final = 10
_NOT_YET_VALID: Final = 9
_OTHER_HOST: Final = frozenset({62, 64})

Handshake = Callable[[ssl.SSLContext], ssl.SSLSocket]
"""Connects and negotiates TLS with these settings. Raises OSError."""
Confirm = Callable[[str], bool]
"""Asks the user whether a fingerprint is right."""
Keep = Callable[[str, str], None]
"""Pins the certificate of a host and port by its fingerprint. Raises DiskError, StoreError."""


class Pin(NamedTuple):
    """A pinned certificate. ``where``: the place of the pin, for messages."""

    fingerprint: str
    where: str


class Pins(Protocol):
    """Where pinned certificates are kept."""

    changed_hint: str
    """What to do if a service has a new certificate."""

    def find(self, place: str) -> Pin | None:
        """Return the pin of a host and port, or None. Raises StoreError."""

    def others(self, place: str) -> frozenset[str]:
        """Return the fingerprints that are trusted at a host and port without a pin of their own. Raises StoreError."""


class Trust:
    """Decides whether the certificate of one service is trusted.

    ``keep``: pins a certificate that the user accepts; None if certificates may not be accepted. ``confirm``: asks the
    user; None if the process cannot prompt. ``accept``: accept without asking. ``statement``: the statement that does
    so, for the message, with ``{fingerprint}`` for the certificate's, or a function that makes it from the fingerprint.
    """

    def __init__(
        self,
        url: ServiceUrl,
        pins: Pins,
        environment: Mapping[str, str],
        *,
        keep: Keep | None = None,
        confirm: Confirm | None = None,
        accept: bool = False,
        statement: str | Callable[[str], str] = "",
    ) -> None:
        self._url = url
        self._pins = pins
        self._environment = environment
        self._keep = keep
        self._confirm = confirm
        self._accept = accept
        self._statement = statement

    def open(self, handshake: Handshake) -> ssl.SSLSocket:
        """Return a connection whose certificate is trusted.

        Raises ProcessError for a certificate that is not trusted, StoreError for a file that cannot be read, OSError.
        """
        pin = self._pins.find(self._url.place)
        if pin is None:
            trusted = self._of_others(handshake) or self._of_authority(handshake)
            if trusted is not None:
                return trusted
        connection = handshake(_unverified())
        try:
            self._compare(fingerprint_of(connection.getpeercert(binary_form=True) or b""), pin)
        except BaseException:
            connection.close()
            raise
        return connection

    def _compare(self, fingerprint: str, pin: Pin | None) -> None:
        """Compare a fingerprint with the pinned one, or pin it. Raises ProcessError."""
        if pin is None:
            self._require_confirmation(fingerprint)
            if self._keep is not None:
                self._keep(self._url.place, fingerprint)
        elif not hmac.compare_digest(pin.fingerprint, fingerprint):
            raise ProcessError(
                f"the certificate of {self._url.place} has changed: pinned is {pin.fingerprint}, presented is {fingerprint}. "
                "Another machine may be answering in its place",
                code="GGS-00924",
                where=pin.where,
                hint=self._pins.changed_hint,
            )

    def _of_others(self, handshake: Handshake) -> ssl.SSLSocket | None:
        """Return a connection if its certificate is trusted without a pin, None if it is not."""
        others = self._pins.others(self._url.place)
        if not others:
            return None
        connection = handshake(_unverified())
        if fingerprint_of(connection.getpeercert(binary_form=True) or b"") in others:
            return connection
        connection.close()
        return None

    def _of_authority(self, handshake: Handshake) -> ssl.SSLSocket | None:
        """Return a connection if a trusted authority issued the certificate, None if none did."""
        try:
            return handshake(_verified(self._environment.get(AUTHORITIES, "")))
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in _UNKNOWN_ISSUER:
                return None
            raise self._refused(error) from error

    def _refused(self, error: ssl.SSLCertVerificationError) -> ProcessError:
        hint = "correct the certificate of the service"
        if error.verify_code in _OTHER_HOST:
            hint = "use the host name of the certificate in the address"
        elif error.verify_code in (_EXPIRED, _NOT_YET_VALID):
            hint = "renew the certificate of the service, and check the clocks of both machines"
        return ProcessError(
            f"the certificate of {self._url.place} is refused: {error.verify_message.rstrip('.').lower()}",
            code="GGS-00923",
            hint=hint,
        )

    def _require_confirmation(self, fingerprint: str) -> None:
        """Raise ProcessError unless the certificate is accepted."""
        if self._accept:
            return
        shown = f"The certificate of {self._url.place} is not known. Its SHA-256 fingerprint is\n{fingerprint}\n"
        if self._confirm is not None:
            if self._confirm(shown):
                return
            raise StateError(
                "not connected: the certificate was not accepted",
                hint="compare the fingerprint with INFO SERVICE in the other home, then CONNECT again",
            )
        made = self._statement if isinstance(self._statement, str) else self._statement(fingerprint)
        statement = made.replace("{fingerprint}", fingerprint)
        raise ProcessError(
            f"the certificate of {self._url.place} is not known: SHA-256 {fingerprint}",
            code="GGS-00922",
            hint=f"compare it with INFO SERVICE in the other home, then accept it once with: {statement}",
        )


def _unverified() -> ssl.SSLContext:
    """Settings for a certificate that is compared with its pin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verified(authorities: str) -> ssl.SSLContext:
    """Settings that require an authority: those of a file or folder, or the system's. Raises StoreError."""
    path = Path(authorities) if authorities else None
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if path is None:
        return context
    try:
        for file in sorted(each for each in path.iterdir() if each.suffix in _ENDINGS) if path.is_dir() else [path]:
            context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise StoreError(f"the authorities of {AUTHORITIES} cannot be read: {reason}", where=str(path)) from error
    return context
