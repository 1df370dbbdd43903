"""The credential store: logins by alias, so that no password stands in a script, a report or a process list."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ConflictError, DiskError, NotFoundError, StoreError
from ggshell.files import locked, write_atomically
from ggshell.store.home import Home

DEFAULT_DOMAIN = "OracleGoldenGate"
_NONCE = 12
_KEY = 32
_MARK = b"GGSCRED1"
_TRIES = 100
_PAUSE = 0.05

Entries = dict[str, dict[str, dict[str, str]]]


class Login(NamedTuple):
    """A user with what it needs to log in."""

    userid: str
    password: str


class Credential(NamedTuple):
    """An entry of the store, without its secret."""

    domain: str
    alias: str
    userid: str


class CredentialStore:
    """An encrypted file (AES-256-GCM) beside its key; both belong to the owner alone.

    Every change is made under a lock and replaces the file whole, so two shells do not undo each other's.
    """

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "dircrd"
        self._path = self._folder / "credentials.ggs"
        self._key_path = self._folder / "credentials.key"

    @property
    def exists(self) -> bool:
        return self._path.exists()

    def create(self) -> None:
        """Make an empty store.  Raises ConflictError when there is one."""
        with self._changing():
            if self.exists:
                raise ConflictError("the credential store exists already", hint="INFO CREDENTIALSTORE shows it")
            self._save({})

    def add(
        self, alias: str, userid: str, password: str, domain: str = DEFAULT_DOMAIN, *, replace: bool = False
    ) -> None:
        """Add or replace an alias.  Raises ConflictError for an alias that exists, NotFoundError for one to replace."""
        with self._changing():
            entries = self._load() if self.exists else {}
            known = entries.setdefault(domain, {})
            if replace and alias not in known:
                raise _unknown(alias, domain)
            if not replace and alias in known:
                raise ConflictError(
                    f"alias {alias} exists already in domain {domain}", hint="ALTER CREDENTIALSTORE REPLACE …"
                )
            known[alias] = {"userid": userid, "password": password}
            self._save(entries)

    def delete(self, alias: str, domain: str = DEFAULT_DOMAIN) -> None:
        """Remove an alias.  Raises NotFoundError."""
        with self._changing():
            entries = self._load()
            if alias not in entries.get(domain, {}):
                raise _unknown(alias, domain)
            del entries[domain][alias]
            if not entries[domain]:
                del entries[domain]
            self._save(entries)

    def remove(self) -> None:
        """Remove the whole store with its key.  Raises NotFoundError when there is none."""
        with self._changing():
            if not self.exists:
                raise _no_store()
            self._path.unlink()
            self._key_path.unlink(missing_ok=True)

    def entries(self) -> list[Credential]:
        """All aliases, without secrets."""
        return [
            Credential(domain, alias, entry["userid"])
            for domain, aliases in sorted(self._load().items())
            for alias, entry in sorted(aliases.items())
        ]

    def resolve(self, alias: str, domain: str = DEFAULT_DOMAIN) -> Login:
        """The login of an alias.  Raises NotFoundError naming it."""
        entry = self._load().get(domain, {}).get(alias) if self.exists else None
        if entry is None:
            raise _unknown(alias, domain)
        return Login(entry["userid"], entry["password"])

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the store alone; another shell's change is waited for, since it takes a moment only."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DiskError(f"cannot make {self._folder}: {error.strerror}") from error
        with contextlib.ExitStack() as held:
            for attempt in range(_TRIES):
                try:
                    held.enter_context(locked(self._folder / ".credentials.lock", "the credential store"))
                    break
                except ConflictError:
                    if attempt == _TRIES - 1:
                        raise
                    threading.Event().wait(_PAUSE)
            yield

    def _save(self, entries: Entries) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not self._key_path.exists():
            if self.exists:
                raise self._unreadable("its key is missing")
            write_atomically(self._key_path, os.urandom(_KEY), mode=0o600)
        nonce = os.urandom(_NONCE)
        sealed = AESGCM(_read(self._key_path)).encrypt(nonce, json.dumps(entries).encode(), _MARK)
        write_atomically(self._path, _MARK + nonce + sealed, mode=0o600)

    def _load(self) -> Entries:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data = _read(self._path)
        if not self._key_path.exists():
            raise self._unreadable("its key is missing")
        if not data.startswith(_MARK):
            raise self._unreadable("it does not begin as one")
        nonce, sealed = data[len(_MARK) : len(_MARK) + _NONCE], data[len(_MARK) + _NONCE :]
        try:
            entries: Entries = json.loads(AESGCM(_read(self._key_path)).decrypt(nonce, sealed, _MARK))
        except (InvalidTag, ValueError) as error:
            raise self._unreadable("it is damaged, or its key is another one") from error
        return entries

    def _unreadable(self, why: str) -> StoreError:
        return StoreError(
            f"the credential store {self._path} cannot be read: {why}",
            code="GGS-00307",
            hint=f"restore it and {self._key_path.name}, or remove both and add the aliases again",
        )


def _unknown(alias: str, domain: str) -> NotFoundError:
    return NotFoundError(
        f"alias {alias} is not in the credential store (domain {domain})",
        code="GGS-00221",
        hint="INFO CREDENTIALSTORE lists the aliases; ALTER CREDENTIALSTORE ADD USER … ALIAS adds one",
    )


def _no_store() -> NotFoundError:
    return NotFoundError("there is no credential store", hint="ADD CREDENTIALSTORE makes it")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _no_store() from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
