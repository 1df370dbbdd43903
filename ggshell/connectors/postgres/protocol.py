"""The messages of PostgreSQL's protocol that ggshell builds and reads itself, without libpq."""

from __future__ import annotations

import struct
from typing import Any, Final

from ggshell.connectors.postgres import session

HEAD: Final = 5
"""Size of the head of a protocol message: the type byte and the length."""
GSSAPI_SINCE: Final = 120_000
_HEAD: Final = struct.Struct(">BI")


def message(kind: int, body: bytes) -> bytes:
    """Build one protocol message."""
    return _HEAD.pack(kind, len(body) + 4) + body


def is_plain(connection: Any, control: Any) -> bool:
    """Whether the socket carries the plain protocol. ``control`` is another connection of the same login."""
    pgconn = connection.pgconn
    if pgconn.host.startswith((b"/", b"@")):  # TLS and GSSAPI are never used on a Unix socket
        return True
    if pgconn.ssl_in_use:
        return False
    if connection.info.server_version < GSSAPI_SINCE:
        return True
    rows = session.execute(control, "SELECT encrypted FROM pg_stat_gssapi WHERE pid = %s", (pgconn.backend_pid,))
    return rows == [(False,)]


def refusal(body: bytes) -> Exception:
    """The server's ErrorResponse as the exception that the driver would raise. Each field is one letter and a text."""
    import psycopg

    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    try:
        kind: type[Exception] = psycopg.errors.lookup(fields.get(b"C", ""))
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(fields.get(b"M", "the server gave no reason"))
