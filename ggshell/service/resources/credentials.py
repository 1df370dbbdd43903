"""Credentials: the aliases of the credential store."""

from __future__ import annotations

from ggshell.errors import GgsError, NotFoundError
from ggshell.home.credential import CredentialStore
from ggshell.home.users import Role
from ggshell.language.redaction import masked
from ggshell.service.answers import Answer, Said, collection, item
from ggshell.service.call import Call
from ggshell.service.logins import LoginBody, delete_login, set_login
from ggshell.service.responses import Items, Resource
from ggshell.service.routes import resource

_BASE = "/credentials"


class ShownCredentials(Resource, tag="ogg:credentials"):
    """The user of an alias."""

    userid: str


class CredentialsValid(Resource, tag="ogg:credentialsValid"):
    """Whether an alias can log in; a message says why not."""

    valid: bool


@resource("GET", _BASE, role=Role.USER, summary="List the domains of the credential store", returns=Items)
def list_domains(call: Call) -> Answer:
    domains = sorted({entry.domain for entry in CredentialStore(call.home).entries()} if _exists(call) else ())
    return Answer(collection(item(call.url(_BASE), domain) for domain in domains))


@resource("GET", f"{_BASE}/{{domain}}", role=Role.USER, summary="List the aliases of a domain", returns=Items)
def list_aliases(call: Call, domain: str) -> Answer:
    names = (
        [entry.alias for entry in CredentialStore(call.home).entries() if entry.domain == domain]
        if _exists(call)
        else []
    )
    if not names:
        raise NotFoundError(f"domain {domain} has no aliases")
    return Answer(collection(item(call.url(f"{_BASE}/{domain}"), name) for name in names))


@resource(
    "GET",
    f"{_BASE}/{{domain}}/{{alias}}",
    role=Role.USER,
    summary="Show an alias, without its password",
    returns=ShownCredentials,
)
def get_alias(call: Call, domain: str, alias: str) -> Answer:
    login = CredentialStore(call.home).resolve(alias, domain)
    return Answer(ShownCredentials(userid=masked(login.userid)))


@resource(
    "POST",
    f"{_BASE}/{{domain}}/{{alias}}",
    role=Role.ADMINISTRATOR,
    summary="Add an alias",
    body=LoginBody,
    status=201,
)
def create_alias(call: Call, domain: str, alias: str) -> Answer:
    set_login(call, "ADD", domain, alias, call.body)
    return Answer(status=201)


@resource(
    "PUT",
    f"{_BASE}/{{domain}}/{{alias}}",
    role=Role.ADMINISTRATOR,
    summary="Replace the login of an alias",
    body=LoginBody,
)
def replace_alias(call: Call, domain: str, alias: str) -> Answer:
    set_login(call, "REPLACE", domain, alias, call.body)
    return Answer()


@resource("DELETE", f"{_BASE}/{{domain}}/{{alias}}", role=Role.ADMINISTRATOR, summary="Delete an alias")
def delete_alias(call: Call, domain: str, alias: str) -> Answer:
    delete_login(call, domain, alias)
    return Answer()


@resource(
    "GET",
    f"{_BASE}/{{domain}}/{{alias}}/valid",
    role=Role.USER,
    summary="Check that an alias can log in",
    returns=CredentialsValid,
)
def is_valid(call: Call, domain: str, alias: str) -> Answer:
    CredentialStore(call.home).resolve(alias, domain)
    try:
        call.log_in(f"{domain}.{alias}")
    except GgsError as error:
        call.said.append(Said.of(error, "WARNING"))
        return Answer(CredentialsValid(valid=False))
    return Answer(CredentialsValid(valid=True))


def _exists(call: Call) -> bool:
    return CredentialStore(call.home).exists
