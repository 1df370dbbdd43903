"""The seal of ggshell's logical messages, which shows that a message is genuine.

Every user may write logical messages, so the content follows a seal: the SHA-256 sum of a secret and the content, in
hexadecimal digits. The content names its transaction, so a copy of the message is not valid in another one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from ggshell.connectors.postgres.session import execute
from ggshell.errors import DatabaseError
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


def shared_secret(connection: Any, table: str, statement: str) -> str | None:
    """Return the secret in a table of the source; None without the table.

    ``statement``: what grants the right to read it. Raises DatabaseError (GGS-00580) without this right."""
    if execute(connection, "SELECT to_regclass(%s)", [table])[0][0] is None:
        return None
    try:
        rows = execute(connection, f"SELECT secret FROM {table}")
    except DatabaseError as error:
        raise DatabaseError(
            f"the Extract's user cannot read {table}, which shows that a message in the log is genuine",
            code="GGS-00580",
            hint=f"GRANT SELECT ON {table} TO the user, or {statement} again: it grants this to all roles with REPLICATION",
        ) from error
    return str(rows[0][0]) if rows else None


def _seal(secret: str, body: bytes) -> str:
    return hashlib.sha256(secret.encode() + body).hexdigest()
