"""Encryption keys: the named keys of the file ENCKEYS, with which trails can be encrypted."""

from __future__ import annotations

from typing import Literal

from ggshell.cipher import random_bytes
from ggshell.errors import NotFoundError, StateError, UsageError
from ggshell.home.key_file import add_key, delete_key, key_names, key_of_file
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items, Resource
from ggshell.service.routes import resource
from ggshell.service.trail_facts import all_trails, header_of

_BASE = "/enckeys"
_ONE = f"{_BASE}/{{key}}"


class KeyBody(Body, kw_only=True):
    """A new key. ``key_value``: ``0x`` and hexadecimal digits; without it, a random key is made."""

    bit_length: Literal[128, 192, 256, "128", "192", "256"]
    key_value: str | None = None


class EncryptBody(Body, kw_only=True):
    """A text to encrypt."""

    data: str
    encoding: str | None = None


class EncryptKey(Resource, tag="ogg:encryptKey"):
    """The length of a key in bits."""

    bit_length: int


@resource("GET", _BASE, role=Role.USER, summary="List the names of the keys in ENCKEYS", returns=Items)
def list_keys(call: Call) -> Answer:
    return Answer(collection(item(call.url(_BASE), name) for name in key_names(call.home)))


@resource("GET", _ONE, role=Role.USER, summary="Show the length of a key, never the key", returns=EncryptKey)
def get_key(call: Call, key: str) -> Answer:
    return Answer(EncryptKey(bit_length=len(key_of_file(call.home, key)) * 8))


@resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Add a key to ENCKEYS", body=KeyBody, status=201)
def create_key(call: Call, key: str) -> Answer:
    body: KeyBody = call.body
    size = int(body.bit_length) // 8
    add_key(call.home, key, random_bytes(size) if body.key_value is None else _given(body.key_value, size))
    return Answer(status=201)


def _given(text: str, size: int) -> bytes:
    """Return the key of a body. Raises UsageError; the message does not repeat the key."""
    digits = text.removeprefix("0x")
    if len(digits) != 2 * size or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise UsageError(f"keyValue must be 0x and {2 * size} hexadecimal digits")
    return bytes.fromhex(digits)


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Delete a key that no trail is encrypted with")
def remove_key(call: Call, key: str) -> Answer:
    key_of_file(call.home, key)
    used = _encrypted_with(call, key)
    if used:
        raise StateError(f"trail {used} is encrypted with key {key}", hint="keep the key until the files are purged")
    delete_key(call.home, key)
    return Answer()


def _encrypted_with(call: Call, key: str) -> str:
    """Return a trail with a file that is encrypted with a key, or an empty text."""
    for trail in all_trails(call):
        for seqno in trail.name.sequences():
            header = header_of(trail.name, seqno)
            seal = header.seal if header is not None else None
            if seal is not None and seal.protection.key_name.upper() == key.upper():
                return trail.text
    return ""


@resource("POST", f"{_ONE}/encrypt", role=Role.USER, summary="Encrypting passwords is not supported", body=EncryptBody)
def encrypt(call: Call, key: str) -> Answer:
    if key.upper() not in (name.upper() for name in key_names(call.home)):
        raise NotFoundError(f"key {key} is not in ENCKEYS")
    raise not_here("the encryption of passwords", "add the login to the credential store, and name its alias")
