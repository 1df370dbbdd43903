"""The credential store: logins by alias, so that no password stands in a script, a report or a process list."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.errors import ConflictError, NotFoundError
from ggshell.store.home import Home
from ggshell.store.sealed_file import SealedFile

DEFAULT_DOMAIN = "OracleGoldenGate"

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
    """Aliases with their logins, in a sealed file."""

    def __init__(self, home: Home) -> None:
        path = home.root / "dircrd" / "credentials.ggs"
        self._file = SealedFile(path, b"GGSCRED1", "the credential store", "ADD CREDENTIALSTORE")

    @property
    def exists(self) -> bool:
        return self._file.exists

    def create(self) -> None:
        """Make an empty store.  Raises ConflictError when there is one."""
        with self._file.changing():
            if self.exists:
                raise ConflictError("the credential store exists already", hint="INFO CREDENTIALSTORE shows it")
            self._file.save({})

    def add(
        self, alias: str, userid: str, password: str, domain: str = DEFAULT_DOMAIN, *, replace: bool = False
    ) -> None:
        """Add or replace an alias.  Raises ConflictError for an alias that exists, NotFoundError for one to replace."""
        with self._file.changing():
            entries = self._load() if self.exists else {}
            known = entries.setdefault(domain, {})
            if replace and alias not in known:
                raise _unknown(alias, domain)
            if not replace and alias in known:
                raise ConflictError(
                    f"alias {alias} exists already in domain {domain}", hint="ALTER CREDENTIALSTORE REPLACE …"
                )
            known[alias] = {"userid": userid, "password": password}
            self._file.save(entries)

    def delete(self, alias: str, domain: str = DEFAULT_DOMAIN) -> None:
        """Remove an alias.  Raises NotFoundError."""
        with self._file.changing():
            entries = self._load()
            if alias not in entries.get(domain, {}):
                raise _unknown(alias, domain)
            del entries[domain][alias]
            if not entries[domain]:
                del entries[domain]
            self._file.save(entries)

    def remove(self) -> None:
        """Remove the whole store with its key.  Raises NotFoundError when there is none."""
        with self._file.changing():
            self._file.remove()

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

    def _load(self) -> Entries:
        entries: Entries = self._file.load()
        return entries


def _unknown(alias: str, domain: str) -> NotFoundError:
    return NotFoundError(
        f"alias {alias} is not in the credential store (domain {domain})",
        code="GGS-00221",
        hint="INFO CREDENTIALSTORE lists the aliases; ALTER CREDENTIALSTORE ADD USER … ALIAS adds one",
    )
