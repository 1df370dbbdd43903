"""The credential store."""

from __future__ import annotations

from ggshell.errors import NotFoundError
from ggshell.shell.registry import command
from ggshell.shell.results import Result, message
from ggshell.shell.session import Session
from ggshell.store.credential import DEFAULT_DOMAIN, CredentialStore


@command("ADD CREDENTIALSTORE")
def add_credentialstore(session: Session) -> Result:
    session.home.ensure()
    CredentialStore(session.home).create()
    return message("Credential store created in ./dircrd/.")


@command("ALTER CREDENTIALSTORE ADD USER")
def alter_add(
    session: Session, *, userid: str, password: str = "", alias: str = "", domain: str = DEFAULT_DOMAIN
) -> Result:
    session.home.ensure()
    CredentialStore(session.home).add(alias or userid, userid, password, domain)
    return message("Credential store altered.")


@command("ALTER CREDENTIALSTORE REPLACE USER")
def alter_replace(
    session: Session, *, userid: str, password: str = "", alias: str = "", domain: str = DEFAULT_DOMAIN
) -> Result:
    CredentialStore(session.home).add(alias or userid, userid, password, domain, replace=True)
    return message("Credential store altered.")


@command("ALTER CREDENTIALSTORE DELETE USER")
def alter_delete(session: Session, *, userid: str, alias: str = "", domain: str = DEFAULT_DOMAIN) -> Result:
    CredentialStore(session.home).delete(alias or userid, domain)
    return message("Credential store altered.")


@command("INFO CREDENTIALSTORE")
def info_credentialstore(session: Session, *, domain: str | None = None) -> Result:
    entries = [entry for entry in CredentialStore(session.home).entries() if domain in (None, entry.domain)]
    if not entries:
        raise NotFoundError("the credential store holds no alias" + (f" in domain {domain}" if domain else ""))
    lines = ["Reading from credential store:"]
    known = ""
    for entry in entries:
        if entry.domain != known:
            known = entry.domain
            lines += ["", f"{'Default domain' if known == DEFAULT_DOMAIN else 'Domain'}: {known}"]
        lines += ["", f"  Alias: {entry.alias}", f"  Userid: {entry.userid}"]
    return Result("\n".join(lines), ("domain", "alias", "userid"), tuple(entries))
