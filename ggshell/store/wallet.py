"""The wallet: versions of the master key, which encrypts trails; and the key file ENCKEYS of older set-ups."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, NamedTuple

from ggshell.cipher import random_bytes
from ggshell.clock import Clock
from ggshell.errors import ConflictError, NotFoundError, ParameterError, StateError
from ggshell.store.home import Home
from ggshell.store.sealed_file import SealedFile

DEFAULT_NAME = "OGG_DEFAULT_MASTERKEY"
_FILE, _KEYS, _SIZE = "cwallet.sso", "ENCKEYS", 32
_LINE = re.compile(r"(\S+)\s+0x([0-9A-Fa-f]+)")
_LONGEST = 32_767
"""The manual allows so many versions."""


class KeyStatus(Enum):
    """What a version is good for: CURRENT encrypts, AVAILABLE still decrypts, DELETED waits for PURGE WALLET."""

    CURRENT = "Current"
    AVAILABLE = "Available"
    DELETED = "Deleted"


class KeyVersion(NamedTuple):
    """A version of the master key, without its secret; ``created`` in microseconds since 1970."""

    number: int
    created: int
    status: KeyStatus


class Wallet:
    """Keys by name and version in a sealed file; ``location`` is WALLETLOCATION, ``name`` MASTERKEYNAME."""

    def __init__(self, home: Home, location: str = "", name: str = "") -> None:
        self.folder = home.resolve(location or "dirwlt")
        self.name = name or DEFAULT_NAME
        self._keys_file = home.root / _KEYS
        self._file = SealedFile(self.folder / _FILE, b"GGSWALL1", "the wallet", "CREATE WALLET")

    @property
    def exists(self) -> bool:
        return self._file.exists

    def create(self) -> None:
        """Make an empty wallet.  Raises ConflictError when there is one."""
        with self._file.changing():
            if self.exists:
                raise ConflictError(f"there is a wallet in {self.folder} already", hint="OPEN WALLET opens it")
            self._file.save([])

    def check(self) -> None:
        """Raises NotFoundError when there is no wallet, StoreError when it cannot be read."""
        self._load()

    def add(self, clock: Clock, *, renew: bool = False) -> int:
        """A new version of the master key, which encrypts from now on; its number.

        Raises ConflictError when there is a first version already, NotFoundError when there is none to renew.
        """
        with self._file.changing():
            entries = self._load()
            mine = [entry for entry in entries if entry["name"] == self.name]
            if mine and not renew:
                raise ConflictError(
                    f"master key {self.name} exists already", hint="RENEW MASTERKEY makes a new version"
                )
            if renew and not mine:
                raise self._missing()
            number = max((entry["version"] for entry in mine), default=0) + 1
            if number > _LONGEST:
                raise StateError(f"master key {self.name} has {_LONGEST} versions, more there cannot be")
            secret = random_bytes(_SIZE).hex()
            entries.append(
                {"name": self.name, "version": number, "created": clock.now(), "secret": secret, "deleted": False}
            )
            self._file.save(entries)
        return number

    def mark(self, first: int, last: int, *, deleted: bool) -> list[int]:
        """Mark versions as deleted, or take the mark off; which of them were changed.

        Raises NotFoundError when none of the range is there, StateError for the current version, which is in use.
        """
        with self._file.changing():
            entries = self._load()
            current = self._current()
            changed = []
            for entry in entries:
                if entry["name"] == self.name and first <= entry["version"] <= last and entry["deleted"] != deleted:
                    if deleted and entry["version"] == current and first == last:
                        raise StateError(
                            f"version {current} of the master key is the current one", hint="RENEW MASTERKEY first"
                        )
                    if deleted and entry["version"] == current:
                        continue
                    entry["deleted"] = deleted
                    changed.append(int(entry["version"]))
            if not changed:
                state = "that could be deleted" if deleted else "marked as deleted"
                raise NotFoundError(
                    f"no version {first} to {last} of the master key {state} is there", hint="INFO MASTERKEY"
                )
            self._file.save(entries)
        return changed

    def purge(self) -> int:
        """Remove the versions that are marked as deleted, for good; how many there were."""
        with self._file.changing():
            entries = self._load()
            kept = [entry for entry in entries if not entry["deleted"]]
            self._file.save(kept)
        return len(entries) - len(kept)

    def versions(self) -> list[KeyVersion]:
        """All versions of the master key, the oldest first."""
        current = self._current()
        return [
            KeyVersion(entry["version"], entry["created"], _status(entry, current))
            for entry in self._load()
            if entry["name"] == self.name
        ]

    def current(self) -> int:
        """The version that encrypts.  Raises NotFoundError."""
        number = self._current()
        if number is None:
            raise self._missing()
        return number

    def secret(self, name: str, version: int) -> bytes:
        """The secret of a key's version; of version 0 the key file's.  Raises NotFoundError, ParameterError."""
        if version == 0:
            return self._of_key_file(name)
        for entry in self._load():
            if (entry["name"], entry["version"]) == (name, version):
                return bytes.fromhex(entry["secret"])
        raise NotFoundError(
            f"version {version} of master key {name} is not in the wallet {self.folder}",
            code="OGG-06129",
            hint="copy the wallet of the system that wrote the trail",
        )

    def _current(self) -> int | None:
        numbers = [e["version"] for e in self._load() if e["name"] == self.name and not e["deleted"]]
        return max(numbers, default=None)

    def _load(self) -> list[dict[str, Any]]:
        return list(self._file.load())

    def _missing(self) -> NotFoundError:
        return NotFoundError(f"there is no master key {self.name} in the wallet", hint="ADD MASTERKEY makes it")

    def _of_key_file(self, name: str) -> bytes:
        path = self._keys_file
        try:
            lines = path.read_text().splitlines()
        except OSError as error:
            raise NotFoundError(f"key {name} is looked up in {path}: {error.strerror}", hint=_how(name)) from error
        for number, line in enumerate(lines, 1):
            found = _LINE.fullmatch(line.split("#")[0].strip())
            if found and found[1].upper() == name.upper():
                if len(found[2]) not in (32, 48, 64):
                    raise ParameterError(
                        f"key {name} has {len(found[2]) * 4} bits", where=f"{path}:{number}", hint="128, 192 or 256"
                    )
                return bytes.fromhex(found[2])
        raise NotFoundError(f"key {name} is not in {path}", hint=_how(name))


def _status(entry: dict[str, Any], current: int | None) -> KeyStatus:
    if entry["deleted"]:
        return KeyStatus.DELETED
    return KeyStatus.CURRENT if entry["version"] == current else KeyStatus.AVAILABLE


def _how(name: str) -> str:
    return f"a line there reads: {name} 0x and 32, 48 or 64 hexadecimal digits"
