"""A small JSON document in an encrypted file (AES-256-GCM) beside its key; both belong to the owner alone."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ggshell.cipher import NONCE, Cipher, random_bytes
from ggshell.errors import ConflictError, DiskError, NotFoundError, StoreError
from ggshell.files import locked, write_atomically

_KEY = 32
_TRIES = 100
_PAUSE = 0.05


class SealedFile:
    """``what`` names it in errors, ``makes`` is the command that makes one; ``mark`` begins the file.

    Every change is made under a lock and replaces the file whole, so two shells do not undo each other's.
    """

    def __init__(self, path: Path, mark: bytes, what: str, makes: str) -> None:
        self.path = path
        self._key_path = path.with_suffix(".key")
        self._mark = mark
        self._what = what
        self._makes = makes

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the file alone; another shell's change is waited for, since it takes a moment only."""
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DiskError(f"cannot make {folder}: {error.strerror}") from error
        with contextlib.ExitStack() as held:
            for attempt in range(_TRIES):
                try:
                    held.enter_context(locked(folder / f".{self.path.stem}.lock", self._what))
                    break
                except ConflictError:
                    if attempt == _TRIES - 1:
                        raise
                    threading.Event().wait(_PAUSE)
            yield

    def save(self, value: Any) -> None:
        """Replace the document.  Raises StoreError when its key is gone, DiskError."""
        if not self._key_path.exists():
            if self.exists:
                raise self._unreadable("its key is missing")
            write_atomically(self._key_path, random_bytes(_KEY), mode=0o600)
        nonce = random_bytes(NONCE)
        sealed = Cipher(self._read(self._key_path)).encrypt(nonce, json.dumps(value).encode(), self._mark)
        write_atomically(self.path, self._mark + nonce + sealed, mode=0o600)

    def load(self) -> Any:
        """The document.  Raises NotFoundError when there is none, StoreError when it cannot be read."""
        data = self._read(self.path)
        if not self._key_path.exists():
            raise self._unreadable("its key is missing")
        if not data.startswith(self._mark):
            raise self._unreadable("it does not begin as one")
        first = len(self._mark)
        try:
            return json.loads(
                Cipher(self._read(self._key_path)).decrypt(
                    data[first : first + NONCE], data[first + NONCE :], self._mark
                )
            )
        except ValueError as error:
            raise self._unreadable("it is damaged, or its key is another one") from error

    def remove(self) -> None:
        """Remove it with its key.  Raises NotFoundError when there is none."""
        if not self.exists:
            raise self._missing()
        self.path.unlink()
        self._key_path.unlink(missing_ok=True)

    def _missing(self) -> NotFoundError:
        return NotFoundError(f"there is no {self._what.removeprefix('the ')}", hint=f"{self._makes} makes it")

    def _unreadable(self, why: str) -> StoreError:
        return StoreError(
            f"{self._what} {self.path} cannot be read: {why}",
            code="GGS-00307",
            hint=f"restore it and {self._key_path.name} from a copy, or remove both and make it anew",
        )

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
