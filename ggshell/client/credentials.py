"""Stored logins for CONNECT (ADD CREDENTIALS): an encrypted file in the user's folder, which only the user can read."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ConflictError, NotFoundError, UsageError
from ggshell.home.sealed_file import SealedFile

_LONGEST = 256


class StoredLogin(NamedTuple):
    """A login: a user with a password, or an access token."""

    name: str
    user: str = ""
    password: str = ""
    token: str = ""


class StoredLogins:
    """The stored logins of a user. ``folder``: the user's folder."""

    def __init__(self, folder: Path) -> None:
        self._file = SealedFile(
            folder / "credentials.ggs",
            b"GGSCONN1",
            "the file of credentials",
            "store a login with ADD CREDENTIALS",
            folder / ".credentials.lock",
        )

    def all(self) -> list[StoredLogin]:
        """Return every login, sorted by name. Raises StoreError."""
        entries = self._load()
        return [StoredLogin(name, **entry) for name, entry in sorted(entries.items())]

    def find(self, name: str) -> StoredLogin | None:
        """Return the login of a name, or None. Raises StoreError."""
        entry = self._load().get(name)
        return None if entry is None else StoredLogin(name, **entry)

    def matching(self, pattern: str) -> list[StoredLogin]:
        """Return the logins whose names match a pattern. Raises NotFoundError if a name without wildcards has none."""
        found = [each for each in self.all() if fnmatchcase(each.name, pattern)]
        if not found and not any(sign in pattern for sign in "*?"):
            raise _missing(pattern)
        return found

    def add(self, login: StoredLogin) -> None:
        """Store a login. Raises ConflictError if the name is in use, UsageError, DiskError."""
        if len(login.name) > _LONGEST or not login.name.isprintable() or any(sign in login.name for sign in "*?"):
            raise UsageError(f"{login.name[:80]!a} is not a valid name of credentials")
        with self._file.changing():
            entries = self._load()
            if login.name in entries:
                raise ConflictError(
                    f"credentials {login.name} already exist", hint="DELETE CREDENTIALS, then add them again"
                )
            fields = login._asdict()
            entries[fields.pop("name")] = fields
            self._file.save(entries)

    def delete(self, name: str) -> None:
        """Delete a login. Raises NotFoundError."""
        with self._file.changing():
            entries = self._load()
            if name not in entries:
                raise _missing(name)
            del entries[name]
            self._file.save(entries)

    def _load(self) -> dict[str, dict[str, str]]:
        entries: dict[str, dict[str, str]] = self._file.load() if self._file.exists else {}
        return entries


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"credentials {name} do not exist", hint="list them with INFO CREDENTIALS *")
