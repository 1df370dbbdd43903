"""The seal of ggshell's logical messages, which shows that a message is genuine.

Every user may write logical messages, so the content follows a seal: the SHA-256 sum of a secret and the content, in
hexadecimal digits. The content names its transaction, so a copy of the message is not valid in another one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final

from ggshell.connectors.postgres.session import execute
from ggshell.errors import DatabaseError
from ggshell.files import read_json

UNREADABLE: Final = "GGS-00580"
_SEAL = 64
_MAY_READ: Final = """
SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"""


def sealed(secret: str, body: str) -> str:
    """Return a content after its seal."""
    return _seal(secret, body.encode()) + body


def emitting(prefix: str, secret_table: str) -> str:
    """The statement of PL/pgSQL that writes the variable ``body`` to the log as a message, after its seal."""
    return f"""-- As bytes: the server does not convert the text of a message from the encoding of the database.
  PERFORM pg_logical_emit_message(true, '{prefix}', convert_to(
    encode(sha256(convert_to((SELECT secret FROM {secret_table}) || body, 'UTF8')), 'hex') || body, 'UTF8'));"""


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

    ``statement``: what grants the privilege to read it. Raises DatabaseError (GGS-00580) without this privilege."""
    may_read = execute(connection, _MAY_READ, table.split("."))
    if not may_read:
        return None
    if not may_read[0][0]:
        schema = table.partition(".")[0]
        raise DatabaseError(
            f"the Extract's user cannot read {table}, which shows that a message in the log is genuine",
            code=UNREADABLE,
            hint=f"GRANT SELECT ON {table} TO the user, with USAGE ON SCHEMA {schema}; or {statement} again: it grants this to"
            " all roles with REPLICATION",
        )
    rows = execute(connection, f"SELECT secret FROM {table}")
    return str(rows[0][0]) if rows else None


def _seal(secret: str, body: bytes) -> str:
    return hashlib.sha256(secret.encode() + body).hexdigest()
