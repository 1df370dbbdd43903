"""ADD, ALTER, INFO and DELETE CREDENTIALSTORE."""

from __future__ import annotations

from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.results.listings import CredentialLine, CredentialList
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError
from ggshell.home.credential import DEFAULT_DOMAIN, CredentialStore
from ggshell.language.redaction import masked

_FOLDER = "./dircrd/"


@command("ADD CREDENTIALSTORE")
def add_store(session: Session) -> Message:
    """Create an empty store."""
    session.home.ensure()
    CredentialStore(session.home).create()
    return Message((f"Credential store created in {_FOLDER}.",), apart=True)


@command("ALTER CREDENTIALSTORE ADD USER", False)
@command("ALTER CREDENTIALSTORE REPLACE USER", True)
def set_user(
    session: Session, replace: bool, *, userid: str, password: str = "", alias: str = "", domain: str = DEFAULT_DOMAIN
) -> Message:
    """Add or replace an alias (by default the user name); prompts for a missing password."""
    given = password or session.secret(userid)
    store = CredentialStore(session.home)
    name = alias or userid
    store.add(name, userid, given, domain, replace=replace)
    return Message((f"Credential store in {_FOLDER} altered.",), apart=True)


@command("ALTER CREDENTIALSTORE DELETE USER")
def delete_user(session: Session, *, userid: str, alias: str = "", domain: str = DEFAULT_DOMAIN) -> Message:
    """Delete an alias of a user."""
    store = CredentialStore(session.home)
    name = alias or userid
    known = [entry for entry in store.entries() if (entry.alias, entry.domain) == (name, domain)]
    if known and known[0].userid != userid and alias:
        raise NotFoundError(
            f"alias {alias} does not belong to user {userid}", hint="use INFO CREDENTIALSTORE to list the aliases"
        )
    store.delete(name, domain)
    return Message((f"Credential store in {_FOLDER} altered.",), apart=True)


@command("INFO CREDENTIALSTORE")
def info_store(session: Session, *, domain: str = "") -> CredentialList:
    """List the aliases, without their passwords. User IDs are masked, since they may be connection strings."""
    entries = [entry for entry in CredentialStore(session.home).entries() if not domain or entry.domain == domain]
    lines = [CredentialLine(entry.domain, entry.alias, masked(entry.userid)) for entry in entries]
    return CredentialList(_FOLDER, tuple(lines))


@command("DELETE CREDENTIALSTORE")
def delete_store(session: Session, *, force: bool = False) -> Message:
    """Delete the store with all its aliases. An interactive user is asked first, unless FORCE is given."""
    store = CredentialStore(session.home)
    if session.interactive and not force:
        session.confirm(f"Delete the credential store in {_FOLDER} with all its aliases")
    store.remove()
    return Message((f"Credential store in {_FOLDER} deleted.",), apart=True)
