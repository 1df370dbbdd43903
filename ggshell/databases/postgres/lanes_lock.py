"""The lock that all lanes of a parallel Replicat share while they live, and that whoever takes over waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.databases.postgres import session
from ggshell.errors import ConflictError

if TYPE_CHECKING:
    import psycopg

_LANES = 0x6C6C_0000_0000
_GROUP = 0x6767_0000_0000


def shared_lock() -> str:
    """The statement by which a lane takes it; its parameter is the group's lock."""
    return f"SELECT pg_advisory_lock_shared({_LANES}::bigint | %s)"


def wait_for_all(connection: psycopg.Connection[Any], group: str, key: int, program: str) -> None:
    """Return when no lane of a group is left.  Raises ConflictError when one does not end."""
    import psycopg

    try:
        connection.execute("SET lock_timeout = '20s'")
        connection.execute("SELECT pg_advisory_lock(%s::bigint)", [_LANES | _GROUP | key])
        connection.execute("SELECT pg_advisory_unlock(%s::bigint)", [_LANES | _GROUP | key])
        connection.execute("RESET lock_timeout")
    except psycopg.errors.LockNotAvailable:
        raise ConflictError(
            f"another session applies for group {group.upper()}",
            code="GGS-00515",
            hint=f"end it: SELECT pid FROM pg_stat_activity WHERE application_name = '{program}'",
        ) from None
    except psycopg.Error as error:
        raise session.translate(error) from error
