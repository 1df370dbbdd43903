"""Replication origins: the stamp on a Replicat's changes by which an Extract on the same database leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.databases.postgres import session
from ggshell.errors import ConnectionLostError

if TYPE_CHECKING:
    import psycopg


_DROP = "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin"


def names(group: str, key: int) -> tuple[str, str]:
    """The origin of a group, and the one to take when a group of that name in another home has the first; origins belong to
    the whole server."""
    return f"ggs_{group.lower()}", f"ggs_{group.lower()}_{key:x}"


def take(connection: psycopg.Connection[Any], group: str, key: int) -> str | None:
    """Stamp this session's changes; the origin's name, None without the privilege or a free place.

    Raises ConnectionLostError while an earlier session of the group still holds it.
    """
    import psycopg

    try:
        for name in names(group, key):
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


def drop(connection: psycopg.Connection[Any], group: str, key: int) -> None:
    """Remove a group's origins and those of its lanes (DELETE REPLICAT).  Raises DatabaseError when one is in use."""
    for name in names(group, key):
        session.execute(connection, f"{_DROP} WHERE roname = %s", [name])
    session.execute(connection, f"{_DROP} WHERE roname ~ %s", [f"^ggs_{group.lower()}_[0-9]{{1,3}}(_{key:x})?$"])
