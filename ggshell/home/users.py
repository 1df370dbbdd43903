"""The users of a home's service: names, roles and password hashes, in an encrypted file that only the owner can read.

Passwords are hashed with scrypt (RFC 7914), each with its own salt. A user without a password signs in with a client
certificate whose common name is the user's name.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from enum import IntEnum
from typing import Final, NamedTuple

from ggshell.cipher import random_bytes
from ggshell.errors import ConflictError, NotFoundError, UsageError
from ggshell.home.home import Home
from ggshell.home.sealed_file import SealedFile

_COST: Final = 1 << 14
_BLOCK_SIZE: Final = 8
_PARALLEL: Final = 5
_MEMORY: Final = 2 * 128 * _COST * _BLOCK_SIZE
"""scrypt needs 128 * N * r bytes (16 MiB); OpenSSL's limit must be above it."""
_SALT_BYTES: Final = 16
_IDENTITY_BYTES: Final = 16
SHORTEST_PASSWORD: Final = 8
LONGEST_PASSWORD: Final = 1024
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,63}")

StoredUsers = dict[str, dict[str, str]]


class Role(IntEnum):
    """What a user may do; each role includes the roles below it, except DISTRIBUTION."""

    DISTRIBUTION = -1
    """May only connect to the receiver of trails. Below ANYONE, so that no other use of the service is permitted."""
    ANYONE = 0
    """Not a role of a user: what a request without credentials may do."""
    USER = 1
    OPERATOR = 2
    ADMINISTRATOR = 3
    SECURITY = 4

    @property
    def title(self) -> str:
        """The name in the REST API."""
        return self.name.capitalize()

    @property
    def sends_trails(self) -> bool:
        """Whether a path of another home may sign in as a user with this role to send trails."""
        return self is Role.DISTRIBUTION or self >= Role.OPERATOR


def parse_role(name: str) -> Role:
    """Return the role of a name, in any letter case. Raises UsageError."""
    found = Role.__members__.get(name.upper())
    if not found:
        raise UsageError(
            f"{name} is not a valid role", hint="use SECURITY, ADMINISTRATOR, OPERATOR, USER or DISTRIBUTION"
        )
    return found


class User(NamedTuple):
    """A user, without the password. ``certificate``: the user signs in with a certificate and has no password.

    ``identity``: see ``Users.identity``.
    """

    name: str
    role: Role
    info: str = ""
    certificate: bool = False
    identity: str = ""


class Users:
    """The users of a home."""

    def __init__(self, home: Home) -> None:
        path = home.root / "dirwlt" / "users.ggs"
        lock = home.lock_of_store("users")
        self._file = SealedFile(path, b"GGSUSER1", "the file of users", "add the first user with ADD USER", lock)

    def version(self) -> tuple[int, int, int]:
        """Return a value that changes with every change of the users."""
        return self._file.version()

    def all(self) -> list[User]:
        """Return every user, sorted by name. Raises StoreError."""
        return [_user(name, stored) for name, stored in sorted(self._load().items())]

    def credentials(self) -> dict[str, str]:
        """Return a text for every user that changes with the user's password, role or identity. Raises StoreError."""
        return {
            name: f"{stored['role']} {stored['hash']} {stored.get('identity', '')}"
            for name, stored in self._load().items()
        }

    def identity(self, name: str) -> str | None:
        """Return a text that no other user has or had, also not one of the same name; None without the user.

        It is empty for a user that an earlier version added. Raises StoreError.
        """
        stored = self._load().get(name)
        return None if stored is None else stored.get("identity", "")

    def find(self, name: str) -> User | None:
        """Return a user, or None. Raises StoreError."""
        stored = self._load().get(name)
        return None if stored is None else _user(name, stored)

    def add(self, name: str, role: Role, password: str | None, info: str = "") -> User:
        """Add a user; ``password`` None: the user signs in with a certificate.

        Raises UsageError for a name or password that is not valid, ConflictError if the user exists.
        """
        _check_name(name)
        hashed = "" if password is None else _hash_of(name, password)
        identity = random_bytes(_IDENTITY_BYTES).hex()
        entry = {"role": role.name, "info": info, "hash": hashed, "identity": identity}
        with self._file.changing():
            users = self._load()
            if name in users:
                raise ConflictError(f"user {name} already exists", hint=f"use ALTER USER {name}")
            users[name] = entry
            self._file.save(users)
        return _user(name, entry)

    def alter(
        self, name: str, *, role: Role | None = None, password: str | None = None, info: str | None = None
    ) -> User:
        """Change what is given. Raises NotFoundError, UsageError, ConflictError for the last user with role SECURITY."""
        hashed = None if password is None else _hash_of(name, password)
        with self._file.changing():
            users = self._load()
            entry = _required(users, name)
            if role is not None and role is not Role.SECURITY:
                _keep_security(users, name)
            changes = {"role": role.name if role is not None else None, "hash": hashed, "info": info}
            entry.update({key: value for key, value in changes.items() if value is not None})
            self._file.save(users)
        return _user(name, entry)

    def delete(self, name: str) -> None:
        """Delete a user. Raises NotFoundError, and ConflictError for the last user with role SECURITY among others."""
        with self._file.changing():
            users = self._load()
            _required(users, name)
            if len(users) > 1:
                _keep_security(users, name)
            del users[name]
            self._file.save(users)

    def check(self, name: str, password: str) -> User | None:
        """Return the user if the password is right, or None. Takes as long for an unknown user as for a known one."""
        stored = self._load().get(name)
        expected = stored["hash"] if stored else ""
        salt, _, wanted = expected.partition(":")
        given = password.encode()
        found = _scrypt(given[:LONGEST_PASSWORD], bytes.fromhex(salt) or bytes(_SALT_BYTES))
        right = bool(wanted) and len(given) <= LONGEST_PASSWORD and hmac.compare_digest(found, wanted)
        return _user(name, stored) if stored and right else None

    def _load(self) -> StoredUsers:
        users: StoredUsers = self._file.load() if self._file.exists else {}
        return users


def _user(name: str, stored: dict[str, str]) -> User:
    return User(name, Role[stored["role"]], stored.get("info", ""), not stored["hash"], stored.get("identity", ""))


def _required(users: StoredUsers, name: str) -> dict[str, str]:
    if name not in users:
        raise NotFoundError(f"user {name} does not exist", hint="list the users with INFO USERS")
    return users[name]


def _keep_security(users: StoredUsers, name: str) -> None:
    """Raise ConflictError if no other user has the role SECURITY, because users could then not be managed over HTTP."""
    if not any(entry["role"] == Role.SECURITY.name for other, entry in users.items() if other != name):
        raise ConflictError(f"{name} is the only user with the role SECURITY", hint="give another user this role first")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]} is not a valid user name", hint="a letter, then letters, digits and _ . @ -; at most 64"
        )


def _hash_of(name: str, password: str) -> str:
    """Return ``salt:hash`` of a password. Raises UsageError for a password that is too short, too long, or the name."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD or len(password.encode()) > LONGEST_PASSWORD:
        raise UsageError(f"passwords must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    if password.casefold() == name.casefold():
        raise UsageError("passwords must differ from the user name")
    salt = random_bytes(_SALT_BYTES)
    return f"{salt.hex()}:{_scrypt(password.encode(), salt)}"


def _scrypt(password: bytes, salt: bytes) -> str:
    return hashlib.scrypt(password, salt=salt, n=_COST, r=_BLOCK_SIZE, p=_PARALLEL, maxmem=_MEMORY).hex()
