"""The locks of a Replicat's sessions: the next run of a group waits for its own one, and for that of all its appliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres import checkpoint_sql, session
from ggshell.errors import ConflictError

if TYPE_CHECKING:
    import psycopg


_APPLIERS = 0x6C6C_0000_0000
LOCK_SECONDS = 20
"""How long to wait for the sessions of an earlier run of the same group to end, in seconds."""


def locked(connection: psycopg.Connection[Any], statement: str, parameters: list[int], seconds: float) -> bool:
    """Run a statement that takes a lock of the session. Return False if the lock is not free within this time.

    The transaction around it limits the time to this statement, regardless of its result; it does not release the lock.
    """
    import psycopg

    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{round(seconds * 1000)}ms'")
            connection.execute(statement, parameters)
    except psycopg.errors.LockNotAvailable:
        return False
    except psycopg.Error as error:
        raise session.translate(error) from error
    return True


def applier_lock() -> str:
    """The statement with which an applier takes the lock; its parameter is the group's lock."""
    return f"SELECT pg_advisory_lock_shared({_APPLIERS}::bigint | %s)"


def wait_for_appliers(connection: psycopg.Connection[Any], group: str, key: int, program: str) -> None:
    """Wait until all appliers of a group have ended. Raises ConflictError if one does not end."""
    lock = [_APPLIERS | checkpoint_sql.GROUP_LOCK | key]
    if not locked(connection, "SELECT pg_advisory_lock(%s::bigint)", lock, LOCK_SECONDS):
        raise applied_by_another(group, program)
    session.execute(connection, "SELECT pg_advisory_unlock(%s::bigint)", lock)


def applied_by_another(group: str, program: str) -> ConflictError:
    """The error if the lock of a group is not free in time."""
    return ConflictError(
        f"another session is applying for group {group.upper()}",
        code="GGS-00515",
        hint=f"end it: SELECT pid FROM pg_stat_activity WHERE application_name = '{program}'",
    )
