"""ADD, ALTER and INFO CREDENTIALSTORE."""

from __future__ import annotations

from ggshell.errors import NotFoundError
from ggshell.shell.registry import command
from ggshell.shell.results import CredentialLine, Credentials, Message
from ggshell.shell.session import Session
from ggshell.store.credential import DEFAULT_DOMAIN, CredentialStore

_FOLDER = "./dircrd/"


@command("ADD CREDENTIALSTORE")
def add_store(session: Session) -> Message:
    """Make an empty store."""
    session.home.ensure()
    CredentialStore(session.home).create()
    return Message((f"Credential store created in {_FOLDER}.",), apart=True)


@command("ALTER CREDENTIALSTORE ADD USER", False)
@command("ALTER CREDENTIALSTORE REPLACE USER", True)
def set_user(
    session: Session, replace: bool, *, userid: str, password: str = "", alias: str = "", domain: str = DEFAULT_DOMAIN
) -> Message:
    """Add or replace an alias (the user's own name without one); a password that lacks is asked for."""
    given = password or session.secret(userid)
    CredentialStore(session.home).add(alias or userid, userid, given, domain, replace=replace)
    return Message((f"Credential store in {_FOLDER} altered.",), apart=True)


@command("ALTER CREDENTIALSTORE DELETE USER")
def delete_user(session: Session, *, userid: str, alias: str = "", domain: str = DEFAULT_DOMAIN) -> Message:
    """Remove an alias of a user."""
    store = CredentialStore(session.home)
    name = alias or userid
    known = [entry for entry in store.entries() if (entry.alias, entry.domain) == (name, domain)]
    if known and known[0].userid != userid and alias:
        raise NotFoundError(f"alias {alias} is not one of user {userid}", hint="INFO CREDENTIALSTORE lists them")
    store.delete(name, domain)
    return Message((f"Credential store in {_FOLDER} altered.",), apart=True)


@command("INFO CREDENTIALSTORE")
def info_store(session: Session, *, domain: str = "") -> Credentials:
    """The aliases, without their secrets."""
    entries = CredentialStore(session.home).entries()
    lines = [CredentialLine(*entry) for entry in entries if not domain or entry.domain == domain]
    return Credentials(_FOLDER, tuple(lines))
