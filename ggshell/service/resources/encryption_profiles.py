"""Encryption profiles: there is one, the wallet of the home."""

from __future__ import annotations

from typing import Any, Final

from ggshell.errors import ConflictError, GgsError, NotFoundError
from ggshell.groups.home_wallet import wallet_of
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Said, collection, item
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items, Resource, Response
from ggshell.service.routes import resource

_BASE = "/encryption/profiles"
_ONE = f"{_BASE}/{{profile}}"
WALLET: Final = "LocalWallet"


class MasterKeyName(Response):
    """The master key of a profile."""

    name: str
    version: str


class EncryptionProfile(Resource, tag="ogg:encryptionProfile"):
    """An encryption profile."""

    type: str
    is_default: bool
    masterkey: MasterKeyName
    description: str


class EncryptionProfileValid(Resource, tag="ogg:encryptionProfileValid"):
    """Whether the wallet can be used; a message says why not."""

    is_valid: bool


@resource("GET", _BASE, role=Role.USER, summary="List the encryption profiles", returns=Items)
def list_profiles(call: Call) -> Answer:
    return Answer(collection([item(call.url(_BASE), WALLET)]))


@resource("GET", _ONE, role=Role.USER, summary="Show an encryption profile", returns=EncryptionProfile)
def get_profile(call: Call, profile: str) -> Answer:
    _require(profile)
    key = MasterKeyName(name=wallet_of(call.home).name, version="LATEST")
    text = "The wallet of the home"
    return Answer(EncryptionProfile(type="localWallet", is_default=True, masterkey=key, description=text))


@resource(
    "GET",
    f"{_ONE}/valid",
    role=Role.ADMINISTRATOR,
    summary="Check that the wallet can be used",
    returns=EncryptionProfileValid,
)
def is_valid(call: Call, profile: str) -> Answer:
    _require(profile)
    try:
        call.run("OPEN WALLET")
    except GgsError as error:
        call.said.append(Said.of(error, "WARNING"))
        return Answer(EncryptionProfileValid(is_valid=False))
    return Answer(EncryptionProfileValid(is_valid=True))


@resource(
    "POST",
    _ONE,
    role=Role.ADMINISTRATOR,
    summary="Other profiles are not supported",
    body=dict[str, Any],
    optional=True,
)
def create_profile(call: Call, profile: str) -> Answer:
    if profile == WALLET:
        raise ConflictError(f"encryption profile {WALLET} already exists")
    raise not_here("an encryption profile with a key server", f"use {WALLET}: masterkey adds a key to it")


@resource(
    "PATCH", _ONE, role=Role.ADMINISTRATOR, summary="The profile cannot be changed", body=dict[str, Any], optional=True
)
@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="The profile cannot be deleted")
def change_profile(call: Call, profile: str) -> Answer:
    _require(profile)
    raise ConflictError(f"encryption profile {WALLET} cannot be changed or deleted")


def _require(profile: str) -> None:
    if profile != WALLET:
        raise NotFoundError(f"encryption profile {profile} does not exist", hint=f"use {WALLET}")
