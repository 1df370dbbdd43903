"""Connects a shell to the service of another home, for CONNECT and for the option ``--connect``."""

from __future__ import annotations

import os
from typing import Final

from ggshell.cli.outcome import Outcome
from ggshell.cli.session import Session
from ggshell.client.connection import Connection
from ggshell.client.credentials import StoredLogin, StoredLogins
from ggshell.client.folder import required_folder
from ggshell.client.pins import Pins
from ggshell.client.remote import Remote, ShellChoices
from ggshell.errors import GgsError, UsageError
from ggshell.language.redaction import redacted
from ggshell.network.service_url import ServiceUrl, parse_url
from ggshell.network.trust import Confirm, Trust

PASSWORD: Final = "GGSHELL_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password of the user, for scripts."""


def connect_at_start(session: Session) -> Outcome:
    """Connect as the options of the command line say, and return the outcome, as of CONNECT."""
    options = session.options
    user = f" AS {options.user}" if options.user else ""
    deployment = f" DEPLOYMENT {options.deployment}" if options.deployment else ""
    statement = redacted(f"CONNECT {options.connect}{deployment}{user}")
    try:
        connect(session, options.connect, StoredLogin("", options.user), options.deployment)
    except GgsError as error:
        return Outcome(statement, errors=(error,))
    return Outcome(statement)


def connect(
    session: Session,
    address: str,
    given: StoredLogin,
    deployment: str = "",
    proxy: str = "",
    *,
    accept: bool = False,
) -> Remote:
    """Connect a shell to a service; a previous connection ends first, even if this one fails.

    ``given``: what CONNECT names: a user or the name of stored credentials, a password, a token; the rest is looked up or
    asked for. ``accept``: pin a certificate that is not known, and send a password without TLS. Raises GgsError.
    """
    session.leave_home()
    url = parse_url(address)
    _require_encryption(url, accept=accept)
    trust = None
    if url.is_secure:
        confirm = _confirmation(session) if session.interactive else None
        statement = _accepting(url, deployment, given)
        pins = Pins(required_folder(os.environ))
        trust = Trust(url, pins, os.environ, keep=pins.add, confirm=confirm, accept=accept, statement=statement)
    connection = Connection(url, trust, proxy, session.clock)
    try:
        if url.is_secure:
            connection.open()  # a password is asked for only after the certificate is trusted
        remote = Remote(connection, _completed(session, given), deployment)
        remote.sign_in(ShellChoices(session.options.engine, session.options.auto_manager))
    except BaseException:
        connection.close()
        raise
    session.remote = remote
    return remote


def _require_encryption(url: ServiceUrl, *, accept: bool) -> None:
    """Raise UsageError if the password would be sent unencrypted over a network."""
    if not (url.is_secure or url.is_local or accept):
        raise UsageError(
            f"{url} does not encrypt the connection, which is not a connection to this machine",
            hint="use https://, or put ! at the end of CONNECT if the network itself is protected",
        )


def _completed(session: Session, given: StoredLogin) -> StoredLogin:
    """Return a login with its password or token. Raises UsageError, StateError."""
    if given.token:
        return given
    user = given.user
    if not user:
        if session.ask is None or not session.interactive:
            raise UsageError("a user is required", hint="CONNECT url AS user; on the command line, --user user")
        user = session.ask("User: ", False).strip()
    if given.password:
        return StoredLogin("", user, given.password)
    stored = StoredLogins(required_folder(os.environ)).find(user)
    if stored is not None:
        return stored
    return StoredLogin("", user, os.environ.get(PASSWORD, "") or _asked(session, user))


def _asked(session: Session, user: str) -> str:
    """Ask for a password. Raises UsageError if the process cannot prompt."""
    if session.ask is None or not session.interactive:
        raise UsageError(
            f"the password of {user} is required", hint=f"set {PASSWORD}, or store it with ADD CREDENTIALS"
        )
    return session.ask("Password: ", True)


def _accepting(url: ServiceUrl, deployment: str, given: StoredLogin) -> str:
    """Return the CONNECT that accepts the certificate of a service, without its password."""
    words = [f"CONNECT {url}", *([f"DEPLOYMENT {deployment}"] if deployment else [])]
    words += [f"AS {given.user}"] if given.user else ["TOKEN token"] if given.token else []
    return f"{' '.join(words)} !"


def _confirmation(session: Session) -> Confirm:
    """Return the function that shows an unknown certificate and asks whether to accept it."""

    def confirm(shown: str) -> bool:
        answer = session.ask(f"{shown}Accept it, and connect (yes/no)? ", False) if session.ask is not None else ""
        return answer.strip().lower() in ("y", "yes")

    return confirm
