"""DBLOGIN."""

from __future__ import annotations

from ggshell.clock import local_text
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Login, Session

DEFAULT_DOMAIN = "OracleGoldenGate"


def log_in(session: Session, userid: str, password: str | None, source: str | None = None) -> Message:
    """Connect, and keep the connection for the statements that follow.  Raises DatabaseError and leaves the old login."""
    from ggshell.databases.duckdb.session import is_duckdb
    from ggshell.databases.redo.login import is_redo

    if is_redo(source or userid):
        return _log_in_to_redo(session, (source or userid).strip())
    if is_duckdb(source or userid):
        return _log_in_to_duckdb(session, source or userid)
    from ggshell.databases.postgres.session import connect, connection_info, database_facts

    conninfo = connection_info(userid, password, source)
    connection = connect(conninfo)
    database, user, version = database_facts(connection)
    session.log_in(Login(conninfo, user, database, version), connection)
    encoding = connection.info.parameter_status("server_encoding") or ""
    now = local_text(session.clock.now())
    encoding = "UTF-8" if encoding == "UTF8" else encoding
    return Message(
        (
            f"{now}  INFO    OGG-03036  Database character set identified as {encoding}.",
            "",
            f"{now}  INFO    OGG-03037  Session character set identified as UTF-8.",
            "Successfully logged into database.",
        ),
        apart=True,
    )


def _log_in_to_redo(session: Session, login: str) -> Message:
    """A folder of redo: there is nothing to connect to, but it must be there."""
    from ggshell.databases.redo.bounds import first_bound, last_bound
    from ggshell.databases.redo.login import folder_of

    folder = folder_of(login)
    first, last = first_bound(folder), last_bound(folder)
    session.log_in(Login(login, "redo", str(folder), "redo"), None)
    reach = f"from SCN {first.scn} to {last.scn}, {local_text(last.time)}" if last.scn else "which is empty yet"
    return Message(("Successfully logged into database.", f"Redo {folder}, {reach}."), apart=True)


def _log_in_to_duckdb(session: Session, login: str) -> Message:
    """A DuckDB file: opened to see whether that works (a new one is made), and let go, since a Replicat may want it."""
    from ggshell.databases.duckdb.session import connect, execute, file_of, login_of

    path = file_of(login, session.home.root)
    found = login_of(path)
    connection = connect(found)
    try:
        ((version,),) = execute(connection, "SELECT version()")
    finally:
        connection.close()
    session.log_in(Login(found, "duckdb", path.stem, str(version)), None)
    return Message(("Successfully logged into database.", f"DuckDB {version}, file {path}."), apart=True)


@command("DBLOGIN USERIDALIAS")
def login_by_alias(session: Session, *, alias: str, domain: str = DEFAULT_DOMAIN) -> Message:
    """Log in with an alias of the credential store."""
    from ggshell.store.credential import CredentialStore

    found = CredentialStore(session.home).resolve(alias, domain)
    return log_in(session, found.userid, found.password)


@command("DBLOGIN USERID")
def login_by_user(session: Session, *, userid: str, password: str = "") -> Message:
    """Log in with a user; the password is asked for at a terminal, else left to libpq (a password file, peer, trust)."""
    if not password and session.interactive:
        password = session.secret(userid)
    return log_in(session, userid, password or None)


@command("DBLOGIN SOURCEDB")
def login_by_source(
    session: Session,
    *,
    source: str,
    userid: str = "",
    password: str = "",
    useridalias: str = "",
    domain: str = DEFAULT_DOMAIN,
) -> Message:
    """Log in to a data source, with a user or an alias beside it, or with what the source itself says."""
    if useridalias:
        from ggshell.store.credential import CredentialStore

        found = CredentialStore(session.home).resolve(useridalias, domain)
        return log_in(session, found.userid, found.password, source)
    if not userid:
        return log_in(session, source, password or None)
    return log_in(session, userid, password or None, source)
