"""CONNECT and DISCONNECT: work on the home of a service; ADD, DELETE and INFO CREDENTIALS: stored logins for it."""

from __future__ import annotations

import os

from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message
from ggshell.cli.session import Session
from ggshell.client.credentials import StoredLogin, StoredLogins
from ggshell.client.folder import required_folder
from ggshell.errors import StateError


@command("CONNECT")
def connect(
    session: Session,
    *,
    server_url: str,
    deployment: str = "",
    proxy: str = "",
    as_: str = "",
    password: str = "",
    token: str = "",
    force: bool = False,
) -> Message:
    """Connect to a service. From now on, statements work on its home; DISCONNECT ends this."""
    from ggshell.cli import connecting

    given = StoredLogin("", as_, password, token)
    remote = connecting.connect(session, server_url, given, deployment, proxy, accept=force)
    text = (
        f"Connected to {remote.url}, deployment {remote.deployment}, as {remote.user} with role {remote.role.upper()}."
    )
    return Message((text,), apart=True)


@command("DISCONNECT")
def disconnect(session: Session) -> Message:
    """Sign out of the service; statements work on this shell's own home again. Raises StateError if not connected."""
    if not session.is_client or (session.options.admin_client and session.remote is None):
        raise StateError("not connected to a service.", hint="CONNECT url AS user")
    remote, url = session.remote, session.remote.url if session.remote is not None else ""
    session.disconnect()
    session.wants_connection = False
    return Message((f"Disconnected from {url}." if remote is not None else "Not connected.",), apart=True)


@command("ADD CREDENTIALS USER")
@command("ADD CREDENTIALS TOKEN")
def add_credentials(
    session: Session, *, credentials_name: str, userid: str = "", password: str = "", access_token: str = ""
) -> Message:
    """Store a login under a name; prompts for a missing password."""
    given = "" if access_token else password or session.secret(userid, "specify it with PASSWORD")
    _stored().add(StoredLogin(credentials_name, userid, given, access_token))
    return Message((f"Credentials {credentials_name} added.",), apart=True)


@command("DELETE CREDENTIALS")
def delete_credentials(session: Session, *, credentials_name: str) -> Message:
    """Delete a stored login."""
    _stored().delete(credentials_name)
    return Message((f"Credentials {credentials_name} deleted.",), apart=True)


@command("INFO CREDENTIALS")
def info_credentials(session: Session, *, credentials_name: str = "*") -> Listing:
    """List stored logins, without their passwords and tokens."""
    found = _stored().matching(credentials_name)
    rows = [(each.name, each.user, "token" if each.token else "password") for each in found]
    lines = [f"{'Credentials':<24}{'User':<24}Signs in with", *(f"{a:<24}{b:<24}{c}" for a, b, c in rows)]
    text = "\n".join(lines) if rows else "No credentials. ADD CREDENTIALS adds the first."
    return Listing(("credentials", "user", "signs_in_with"), rows, f"\n{text}\n")


def _stored() -> StoredLogins:
    return StoredLogins(required_folder(os.environ))
