"""From a parameter file's login to a connection string."""

from __future__ import annotations

from ggshell.databases.duckdb.session import file_of, is_duckdb, login_of
from ggshell.databases.postgres.session import connection_info
from ggshell.databases.redo.login import is_redo
from ggshell.errors import ParameterError
from ggshell.params.files import LoginParameters
from ggshell.store.credential import CredentialStore
from ggshell.store.home import Home


def redo_login(home: Home, login: LoginParameters) -> str:
    """The folder of redo that a login names (``redo:///folder``), empty when it is another database's."""
    given = CredentialStore(home).resolve(login.alias, login.domain).userid if login.alias else login.userid
    return next((text for text in (login.source, given) if is_redo(text)), "")


def _duckdb_login(home: Home, *given: str) -> str:
    """The login to a DuckDB file (``duckdb:///folder/file``), empty when it is another database's."""
    return next((login_of(file_of(text, home.root)) for text in given if is_duckdb(text)), "")


def conninfo(home: Home, login: LoginParameters) -> str:
    """The connection string of a process.  Raises NotFoundError for an unknown alias, ParameterError without a login."""
    if login.alias:
        found = CredentialStore(home).resolve(login.alias, login.domain)
        file = _duckdb_login(home, login.source, found.userid)
        return file or connection_info(found.userid, found.password, login.source or None)
    file = _duckdb_login(home, login.source, login.userid)
    if file or login.userid:
        return file or connection_info(login.userid, login.password or None, login.source or None)
    raise ParameterError("there is no login", hint="USERIDALIAS, or SOURCEDB / TARGETDB with USERID")
