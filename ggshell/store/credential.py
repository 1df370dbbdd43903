"""The credential store: logins by alias, so that no password stands in a script, a report or a process list."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ConflictError, NotFoundError, StoreError
from ggshell.files import write_atomically
from ggshell.store.home import Home

DEFAULT_DOMAIN = "OracleGoldenGate"
_NONCE = 12
_MARK = b"GGSCRED1"


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
    """An encrypted file (AES-256-GCM) beside its key; both belong to the owner alone."""

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "dircrd"
        self._path = self._folder / "credentials.ggs"
        self._key_path = self._folder / "credentials.key"

    @property
    def exists(self) -> bool:
        return self._path.exists()

    def create(self) -> None:
        """Make an empty store.  Raises ConflictError when there is one."""
        if self.exists:
            raise ConflictError("the credential store exists already")
        self._save({})

    def add(
        self, alias: str, userid: str, password: str, domain: str = DEFAULT_DOMAIN, *, replace: bool = False
    ) -> None:
        """Add or replace an alias.  Raises ConflictError for an alias that exists, NotFoundError for one to replace."""
        entries = self._load() if self.exists else {}
        known = entries.setdefault(domain, {})
        if replace and alias not in known:
            raise NotFoundError(f"alias {alias} does not exist in domain {domain}")
        if not replace and alias in known:
            raise ConflictError(
                f"alias {alias} exists already in domain {domain}", hint="ALTER CREDENTIALSTORE REPLACE …"
            )
        known[alias] = {"userid": userid, "password": password}
        self._save(entries)

    def delete(self, alias: str, domain: str = DEFAULT_DOMAIN) -> None:
        """Remove an alias.  Raises NotFoundError."""
        entries = self._load()
        if alias not in entries.get(domain, {}):
            raise NotFoundError(f"alias {alias} does not exist in domain {domain}")
        del entries[domain][alias]
        self._save(entries)

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
            raise NotFoundError(
                f"alias {alias} is not in the credential store (domain {domain})",
                code="GGS-00221",
                hint="INFO CREDENTIALSTORE lists the aliases; ALTER CREDENTIALSTORE ADD USER … ALIAS adds one",
            )
        return Login(entry["userid"], entry["password"])

    def _key(self) -> bytes:
        if not self._key_path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._key_path, os.urandom(32), mode=0o600)
        return self._key_path.read_bytes()

    def _save(self, entries: dict[str, dict[str, dict[str, str]]]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE)
        sealed = AESGCM(self._key()).encrypt(nonce, json.dumps(entries).encode(), _MARK)
        write_atomically(self._path, _MARK + nonce + sealed, mode=0o600)

    def _load(self) -> dict[str, dict[str, dict[str, str]]]:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data = _read(self._path)
        try:
            nonce, sealed = data[len(_MARK) : len(_MARK) + _NONCE], data[len(_MARK) + _NONCE :]
            entries: dict[str, dict[str, dict[str, str]]] = json.loads(
                AESGCM(self._key()).decrypt(nonce, sealed, _MARK)
            )
        except (InvalidTag, ValueError) as error:
            raise StoreError(
                f"the credential store {self._path} is damaged, or its key is another one",
                hint="restore both files, or remove them and add the aliases again",
            ) from error
        return entries


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError("there is no credential store", hint="ADD CREDENTIALSTORE") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
