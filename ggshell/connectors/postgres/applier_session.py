"""What the sessions of a Replicat hold: the lock that all appliers share while they run, and a replication origin.

The next run of the group waits for the lock. An origin marks the Replicat's changes, so that an Extract on the same database
leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres import checkpoint_sql, session
from ggshell.errors import ConflictError, ConnectionLostError

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
        raise ConflictError(
            f"another session is applying for group {group.upper()}",
            code="GGS-00515",
            hint=f"end it: SELECT pid FROM pg_stat_activity WHERE application_name = '{program}'",
        )
    session.execute(connection, "SELECT pg_advisory_unlock(%s::bigint)", lock)


_DROP = "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin"


def origin_names(group: str, key: int) -> tuple[str, str]:
    """The name of a group's origin, and the name to use if a group of the same name in another home has the first.

    Origins belong to the whole server.
    """
    return f"ggs_{group.lower()}", f"ggs_{group.lower()}_{key:x}"


def take_origin(connection: psycopg.Connection[Any], group: str, key: int) -> str | None:
    """Mark this session's changes with an origin. Return its name, or None without the privilege or a free origin.

    Raises ConnectionLostError while an earlier session of the group still holds the origin.
    """
    import psycopg

    try:
        for name in origin_names(group, key):
            try:
                connection.execute(
                    "SELECT pg_replication_origin_create(%s) WHERE pg_replication_origin_oid(%s) IS NULL", [name, name]
                )
                connection.execute("SELECT pg_replication_origin_session_setup(%s)", [name])
            except psycopg.errors.ObjectInUse:
                continue
            return name
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ConfigurationLimitExceeded):
        return None
    except psycopg.Error as error:
        raise session.translate(error) from error
    raise ConnectionLostError(f"an earlier session of group {group.upper()} still holds its replication origin")


def drop_origins(connection: psycopg.Connection[Any], group: str, key: int) -> None:
    """Drop a group's origins and those of its appliers (DELETE REPLICAT). Raises DatabaseError when one is in use."""
    for name in origin_names(group, key):
        session.execute(connection, f"{_DROP} WHERE roname = %s", [name])
    session.execute(connection, f"{_DROP} WHERE roname ~ %s", [f"^ggs_{group.lower()}_[0-9]{{1,3}}(_{key:x})?$"])
