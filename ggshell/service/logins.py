"""Changes of the credential store: the logins that credentials and connections share."""

from __future__ import annotations

from typing import Final

from ggshell.home.credential import CredentialStore
from ggshell.service.answers import Said
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.statement_words import quoted, word

ALTERED: Final = Said("OGG-15114", "Credential store altered.")


class LoginBody(Body):
    """A login."""

    userid: str
    password: str


def set_login(call: Call, verb: str, domain: str, alias: str, login: LoginBody) -> None:
    """Add or replace an alias; ``verb``: ADD or REPLACE. Raises ConflictError, NotFoundError."""
    user = f"{quoted(login.userid)} PASSWORD {quoted(login.password)}"
    call.run(f"ALTER CREDENTIALSTORE {verb} USER {user} ALIAS {word(alias)} DOMAIN {word(domain)}")
    call.said.append(ALTERED)


def delete_login(call: Call, domain: str, alias: str) -> None:
    """Delete an alias. Raises NotFoundError."""
    login = CredentialStore(call.home).resolve(alias, domain)
    call.run(f"ALTER CREDENTIALSTORE DELETE USER {quoted(login.userid)} ALIAS {word(alias)} DOMAIN {word(domain)}")
    call.said.append(ALTERED)
