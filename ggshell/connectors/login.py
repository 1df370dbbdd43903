"""The login in a parameter file as one text that names the kind of database: the only place that resolves it."""

from __future__ import annotations

from ggshell.connectors.registry import connector_for
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import LoginParameters


def connection_string(home: Home, login: LoginParameters) -> str:
    """Return the connection string of a process; ``connector_for`` returns its kind of database.

    Raises NotFoundError for an unknown alias, ParameterError if there is no login.
    """
    userid, password = login.userid, login.password
    if login.alias:
        found = CredentialStore(home).resolve(login.alias, login.domain)
        userid, password = found.userid, found.password
    return connector_for(login.source, userid).connection_string(home.root, userid, password, login.source)
