"""DBLOGIN and LIST TABLES."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message
from ggshell.cli.session import Session
from ggshell.errors import UsageError
from ggshell.home.credential import DEFAULT_DOMAIN, CredentialStore

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn


def _adopted(session: Session, login: LoggedIn) -> Message:
    """Keep a login, and its connection, for the following statements."""
    session.log_in(login)
    return Message(login.greeting(session.clock.now()), apart=True)


def opened(session: Session, userid: str, password: str | None = None, source: str = "") -> LoggedIn:
    """Connect to a database of any kind. Raises DatabaseError."""
    from ggshell.connectors.logged_in import Credentials
    from ggshell.connectors.registry import connector_for

    given = Credentials(userid, password, source)
    return connector_for(given.names_kind).log_in(given, session.home.root, session.limit)


def login_of_alias(session: Session, alias: str, domain: str = DEFAULT_DOMAIN, source: str = "") -> LoggedIn:
    """Connect with an alias of the credential store. Raises NotFoundError for an unknown alias, DatabaseError."""
    found = CredentialStore(session.home).resolve(alias, domain)
    return opened(session, found.userid, found.password, source)


@command("DBLOGIN USERIDALIAS")
def login_by_alias(session: Session, *, alias: str, domain: str = DEFAULT_DOMAIN) -> Message:
    """Log in with an alias of the credential store. A failed login keeps the previous one."""
    return _adopted(session, login_of_alias(session, alias, domain))


@command("DBLOGIN USERID")
def login_by_user(session: Session, *, userid: str, password: str = "") -> Message:
    """Log in with a user name.

    At a terminal the password is prompted for; otherwise libpq finds it (password file, peer, trust).
    """
    if not password and session.interactive:
        password = session.secret(userid)
    return _adopted(session, opened(session, userid, password or None))


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
    """Log in to a data source, with a user or an alias if given, or else with the credentials in the source."""
    if useridalias:
        return _adopted(session, login_of_alias(session, useridalias, domain, source))
    if not userid:
        return _adopted(session, opened(session, source, password or None))
    return _adopted(session, opened(session, userid, password or None, source))


@command("LIST TABLES")
def list_tables(session: Session, *, table: str) -> Listing:
    """List the tables of the database whose names match a pattern. Raises UsageError if the pattern is not valid."""
    from ggshell.record.name_patterns import is_name_pattern, matches

    if not is_name_pattern(table):
        raise UsageError(f"{table} is not a valid table name", hint="specify schema and table, for example shop.*")
    found = [str(each) for each in session.logged_in().tables() if matches(table, each)]
    lines = [*found, "", f"Found {len(found)} tables matching list criteria."]
    return Listing(("table",), [(name,) for name in found], "\n".join(["", *lines, ""]))
