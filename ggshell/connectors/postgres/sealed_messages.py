"""The seal of ggshell's logical messages, which shows that a message is genuine.

Every user may write logical messages, so the content follows a seal: the SHA-256 sum of a secret and the content, in
hexadecimal digits. The content names its transaction, so a copy of the message is not valid in another one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from ggshell.files import read_json

_SEAL = 64


def sealed(secret: str, body: str) -> str:
    """Return a content after its seal."""
    return _seal(secret, body.encode()) + body


def opened(secrets: Sequence[str], xid: int, message: bytes) -> Any:
    """Return the content of a message in transaction ``xid``, parsed.

    Raises ValueError if the message was not sealed with one of the secrets or for another transaction, KeyError if the
    content does not name its transaction.
    """
    seal, body = message[:_SEAL], message[_SEAL:]
    if not any(hmac.compare_digest(seal, _seal(secret, body).encode()) for secret in secrets):
        raise ValueError("its seal is not valid")
    found = read_json(body)
    if found["xid"] != xid:
        raise ValueError(f"it belongs to transaction {found['xid']}")
    return found


def _seal(secret: str, body: bytes) -> str:
    return hashlib.sha256(secret.encode() + body).hexdigest()
