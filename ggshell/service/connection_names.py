"""Connections: the names under which the API knows the aliases of the credential store.

Every alias is a connection ``Domain.Alias``. Clients can also give an alias another name, which is kept as a document.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.errors import NotFoundError
from ggshell.home.credential import DEFAULT_DOMAIN, CredentialStore
from ggshell.home.documents import Documents
from ggshell.home.home import Home

KIND: Final = "connection"
"""The kind of the documents with the connections that are not themselves aliases."""


class Connection(NamedTuple):
    """A connection: the alias with which it logs in. ``named``: it has a name of its own, kept as a document."""

    domain: str
    alias: str
    named: bool = False


def alias_of(name: str) -> Connection:
    """Return the alias that has the name of a connection, whether it exists or not."""
    domain, dot, alias = name.partition(".")
    return Connection(domain, alias) if dot else Connection(DEFAULT_DOMAIN, name)


def connection_of(home: Home, name: str) -> Connection:
    """Return what a connection's name means: its document if there is one, or the alias with that name."""
    document = Documents(home, KIND).find(name)
    if document is None:
        return alias_of(name)
    return Connection(str(document["domain"]), str(document["alias"]), named=True)


def existing_connection(home: Home, name: str) -> Connection:
    """Return a connection. Raises NotFoundError if it has neither a document nor an alias."""
    found = connection_of(home, name)
    if not found.named and (found.domain, found.alias) not in aliases(home):
        raise NotFoundError(f"connection {name} does not exist", hint="list the connections, or add its credentials")
    return found


def aliases(home: Home) -> list[tuple[str, str]]:
    """Return domain and alias of every entry of the credential store; none if there is no store."""
    store = CredentialStore(home)
    return [(each.domain, each.alias) for each in store.entries()] if store.exists else []


def names(home: Home) -> list[str]:
    """Return the names of all connections, sorted."""
    return sorted({*(f"{domain}.{alias}" for domain, alias in aliases(home)), *Documents(home, KIND).names()})
