"""What a service says about a client certificate while TLS is negotiated: an alert. Only a person can change the reason."""

from __future__ import annotations

import ssl
from typing import Final

from ggshell.errors import ProcessError

_ISSUER: Final = (
    "use a certificate of the authority that CLIENTCA names in dirprm/service.prm of the other home; or name its authority"
    " there, then run there: STOP SERVICE; START SERVICE"
)
_DATES: Final = "replace the certificate and its key in dirwlt of this home, and check the clocks of both machines"
_MISSING: Final = (
    "CLIENTCA in the other home has REQUIRED: place NAME.crt and NAME.key in dirwlt of this home, then"
    " ALTER DISTPATH … AUTHENTICATION CERTIFICATE NAME"
)
_ALERTS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": ("no authority that it trusts has issued the client certificate", _ISSUER),
    "TLSV1_ALERT_DECRYPT_ERROR": ("no authority that it trusts has issued the client certificate", _ISSUER),
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": ("no authority that it trusts has issued the client certificate", _ISSUER),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": ("the client certificate has expired", _DATES),
    "SSLV3_ALERT_BAD_CERTIFICATE": ("the client certificate is not valid, or not valid yet", _DATES),
    "SSLV3_ALERT_CERTIFICATE_REVOKED": ("the client certificate was revoked", _DATES),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": ("it requires a client certificate", _MISSING),
    "SSLV3_ALERT_HANDSHAKE_FAILURE": ("it requires a client certificate, or other methods of encryption", _MISSING),
}
"""OpenSSL's names of the alerts, what they mean here, and what to do."""


def certificate_refusal(where: str, error: OSError, code: str) -> ProcessError | None:
    """Return the error for a service at ``where`` that refuses a client certificate; None if something else went wrong."""
    found = _ALERTS.get(error.reason) if isinstance(error, ssl.SSLError) and error.reason else None
    if found is None:
        return None
    return ProcessError(f"{where} refuses the connection: {found[0]}", code=code, hint=found[1])
