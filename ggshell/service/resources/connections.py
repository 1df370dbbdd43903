"""Connections: the databases of the aliases in the credential store."""

from __future__ import annotations

import re
from typing import Final

from ggshell.errors import ConflictError, UsageError
from ggshell.home.credential import CredentialStore
from ggshell.home.documents import Documents
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.connection_names import KIND, Connection, alias_of, connection_of, existing_connection, names
from ggshell.service.logins import LoginBody, delete_login, set_login
from ggshell.service.responses import Items, Resource
from ggshell.service.routes import resource

_BASE = "/connections"
_ONE = f"{_BASE}/{{connection}}"
_NAME: Final = re.compile(r"[A-Za-z][\w#$-]{0,29}(\.[A-Za-z][\w#$-]{0,29})?")


class Reference(Body):
    """The login of a connection: an alias of the credential store, or a user with a password."""

    domain: str = "OracleGoldenGate"
    alias: str | None = None
    userid: str | None = None
    password: str | None = None


class ConnectionBody(Body):
    """A connection."""

    credentials: Reference


class CredentialsRef(Resource, tag="ogg:credentialsRef"):
    """An alias of the credential store."""

    domain: str
    alias: str


class ShownConnection(Resource, tag="ogg:connection"):
    """A connection."""

    credentials: CredentialsRef


@resource("GET", _BASE, role=Role.USER, summary="List the database connections", returns=Items)
def list_connections(call: Call) -> Answer:
    return Answer(collection(item(call.url(_BASE), name) for name in names(call.home)))


@resource("GET", _ONE, role=Role.USER, summary="Show a database connection", returns=ShownConnection)
def get_connection(call: Call, connection: str) -> Answer:
    found = existing_connection(call.home, connection)
    return Answer(ShownConnection(credentials=CredentialsRef(domain=found.domain, alias=found.alias)))


@resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Add a connection", body=ConnectionBody, status=201)
def create_connection(call: Call, connection: str) -> Answer:
    """Add a connection: a new alias for a user with a password, another name for an alias."""
    if connection in names(call.home):
        raise ConflictError(f"connection {connection} already exists", hint="use PUT to change it")
    _set(call, connection, "ADD")
    return Answer(status=201)


@resource("PUT", _ONE, role=Role.ADMINISTRATOR, summary="Change the login of a connection", body=ConnectionBody)
def update_connection(call: Call, connection: str) -> Answer:
    existing_connection(call.home, connection)
    _set(call, connection, "REPLACE")
    return Answer()


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Delete a connection, or the alias with its name")
def delete_connection(call: Call, connection: str) -> Answer:
    found = existing_connection(call.home, connection)
    if found.named:
        Documents(call.home, KIND).delete(connection)
    else:
        delete_login(call, found.domain, found.alias)
    return Answer()


def _set(call: Call, name: str, verb: str) -> None:
    """Set the login of a connection. Raises UsageError for a body that names no login."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]} is not a valid connection name", hint="use Domain.Alias")
    given: Reference = call.body.credentials
    if given.userid is not None and given.password is not None:
        place = connection_of(call.home, name) if verb == "REPLACE" else alias_of(name)
        set_login(call, verb, place.domain, place.alias, LoginBody(userid=given.userid, password=given.password))
    elif given.alias is not None:
        _refer(call, name, Connection(given.domain, given.alias))
    else:
        raise UsageError("credentials requires an alias, or userid and password")


def _refer(call: Call, name: str, wanted: Connection) -> None:
    """Make a connection another name of an alias. Raises NotFoundError for an unknown alias, UsageError."""
    CredentialStore(call.home).resolve(wanted.alias, wanted.domain)
    present = connection_of(call.home, name)
    if (present.domain, present.alias) == wanted[:2]:
        return
    if name in names(call.home) and not present.named:
        raise UsageError(
            f"connection {name} is itself an alias of the credential store: it cannot refer to {wanted.alias}",
            hint="instead, set userid with its password",
        )
    Documents(call.home, KIND).put(name, {"domain": wanted.domain, "alias": wanted.alias})
