"""ADD, ALTER and INFO CREDENTIALSTORE."""

from __future__ import annotations

from ggshell.errors import NotFoundError
from ggshell.shell.listings import CredentialLine, Credentials
from ggshell.shell.redaction import redacted
from ggshell.shell.registry import command
from ggshell.shell.results import Message
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
    store = CredentialStore(session.home)
    store.add(alias or userid, userid, given, domain, replace=replace)
    _note(session, store)
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
    _note(session, store)
    return Message((f"Credential store in {_FOLDER} altered.",), apart=True)


def _note(session: Session, store: CredentialStore) -> None:
    """Have the catalog know which aliases there are; a user may be a connection string, so that is masked."""
    from ggshell.store.catalog import Catalog

    entries = [entry._replace(userid=redacted(entry.userid)) for entry in store.entries()]
    Catalog(session.home).save_credentials(entries)


@command("INFO CREDENTIALSTORE")
def info_store(session: Session, *, domain: str = "") -> Credentials:
    """The aliases, without their secrets."""
    entries = CredentialStore(session.home).entries()
    lines = [CredentialLine(*entry) for entry in entries if not domain or entry.domain == domain]
    return Credentials(_FOLDER, tuple(lines))
