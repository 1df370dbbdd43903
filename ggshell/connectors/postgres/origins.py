"""Replication origins: they mark the changes of a Replicat, so that an Extract of the same database leaves them out.

Each session of a Replicat has one. An origin belongs to the whole server and remains after the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres import session
from ggshell.errors import ConnectionLostError

if TYPE_CHECKING:
    import psycopg

_ORIGINS: Final = "SELECT roname FROM pg_replication_origin WHERE roname = ANY(%s) OR roname ~ %s"


def origin_names(group: str, key: int) -> tuple[str, str]:
    """The name of a group's origin, and the name to use if a group of the same name in another home has the first.

    Origins belong to the whole server.
    """
    return f"ggs_{group.lower()}", f"ggs_{group.lower()}_{key:x}"


class Origin(NamedTuple):
    """The replication origin of a session. ``missing``: why it has none (then its name is empty)."""

    name: str
    missing: str = ""


def take_origin(connection: psycopg.Connection[Any], group: str, key: int) -> Origin:
    """Mark this session's changes with an origin, if the server allows it.

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
            return Origin(name)
    except psycopg.errors.InsufficientPrivilege:
        return Origin("", "its user cannot execute the functions of replication origins")
    except psycopg.errors.ConfigurationLimitExceeded:
        return Origin("", "all replication origins of the server are in use")
    except psycopg.Error as error:
        raise session.translate(error) from error
    raise ConnectionLostError(f"an earlier session of group {group.upper()} still holds its replication origin")


def drop_origins(connection: psycopg.Connection[Any], group: str, key: int) -> None:
    """Drop a deleted group's origins and those of its appliers: a server has few of them.

    Those in use remain: they belong to a group of the same name in another home, or to a session that has not ended yet.
    Without the privilege, all remain. Changes that an Extract has not read yet keep their mark.
    """
    import psycopg

    names = [*origin_names(group, key), f"^ggs_{group.lower()}_[0-9]{{1,3}}(_{key:x})?$"]
    for (name,) in session.execute(connection, _ORIGINS, [names[:2], names[2]]):
        try:
            connection.execute("SELECT pg_replication_origin_drop(%s)", [name])
        except psycopg.errors.ObjectInUse:
            continue
        except psycopg.errors.InsufficientPrivilege:
            return
        except psycopg.Error as error:
            raise session.translate(error) from error
