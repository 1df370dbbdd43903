"""The credential store: logins by alias, so that passwords do not appear in scripts, reports or process lists."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.errors import ConflictError, NotFoundError
from ggshell.home.home import Home
from ggshell.home.sealed_file import SealedFile

DEFAULT_DOMAIN = "OracleGoldenGate"

Entries = dict[str, dict[str, dict[str, str]]]


class Login(NamedTuple):
    """A user ID and its password."""

    userid: str
    password: str


class Credential(NamedTuple):
    """An entry of the store, without its password."""

    domain: str
    alias: str
    userid: str


class CredentialStore:
    """Aliases and their logins, kept in an encrypted file."""

    def __init__(self, home: Home) -> None:
        path = home.root / "dircrd" / "credentials.ggs"
        lock = home.lock_of_store("credentials")
        self._file = SealedFile(path, b"GGSCRED1", "the credential store", "create it with ADD CREDENTIALSTORE", lock)

    @property
    def exists(self) -> bool:
        return self._file.exists

    def create(self) -> None:
        """Create an empty store. Raises ConflictError if the store exists."""
        with self._file.changing():
            if self.exists:
                raise ConflictError(
                    "the credential store already exists", hint="list its aliases with INFO CREDENTIALSTORE"
                )
            self._file.save({})

    def add(
        self, alias: str, userid: str, password: str, domain: str = DEFAULT_DOMAIN, *, replace: bool = False
    ) -> None:
        """Add an alias, or replace it with ``replace``.

        Raises ConflictError if the alias to add exists, and NotFoundError if the alias to replace does not exist.
        """
        with self._file.changing():
            entries = self._load() if self.exists else {}
            known = entries.setdefault(domain, {})
            if replace and alias not in known:
                raise _unknown(alias, domain)
            if not replace and alias in known:
                raise ConflictError(
                    f"alias {alias} already exists in domain {domain}", hint="use ALTER CREDENTIALSTORE REPLACE …"
                )
            known[alias] = {"userid": userid, "password": password}
            self._file.save(entries)

    def delete(self, alias: str, domain: str = DEFAULT_DOMAIN) -> None:
        """Remove an alias. Raises NotFoundError if it does not exist."""
        with self._file.changing():
            entries = self._load()
            if alias not in entries.get(domain, {}):
                raise _unknown(alias, domain)
            del entries[domain][alias]
            if not entries[domain]:
                del entries[domain]
            self._file.save(entries)

    def remove(self) -> None:
        """Remove the store and its key. Raises NotFoundError if there is no store."""
        with self._file.changing():
            self._file.remove()

    def entries(self) -> list[Credential]:
        """Return all aliases, without passwords."""
        return [
            Credential(domain, alias, entry["userid"])
            for domain, aliases in sorted(self._load().items())
            for alias, entry in sorted(aliases.items())
        ]

    def resolve(self, alias: str, domain: str = DEFAULT_DOMAIN) -> Login:
        """Return the login of an alias. Raises NotFoundError, which names the alias."""
        if not self.exists:
            add = "ALTER CREDENTIALSTORE ADD USER … ALIAS"
            hint = f"create it with {add}, or specify another home with --home"
            if self._file.lost:
                hint = f"restore the file from a backup, or create it again with {add}"
            raise NotFoundError(
                f"alias {alias} is not in the credential store (domain {domain}): {self._file.path} does not exist",
                code="GGS-00221",
                hint=hint,
            )
        entry = self._load().get(domain, {}).get(alias)
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
        hint="list the aliases with INFO CREDENTIALSTORE, or add one with ALTER CREDENTIALSTORE ADD USER … ALIAS",
    )
