"""A small JSON document in an encrypted file (AES-256-GCM), stored next to its key; only the owner can read either file."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ggshell.cipher import NONCE, Cipher, random_bytes
from ggshell.errors import NotFoundError, StoreError
from ggshell.files import disk_errors, locked, read_json, write_atomically

_KEY = 32
_PATIENCE_SECONDS = 5.0


class SealedFile:
    """An encrypted JSON document.

    ``what`` names it in errors, ``remedy`` is the hint if it does not exist, and ``mark`` is the first bytes of the file.

    Every change is made under ``lock`` and replaces the whole file, so two shells do not overwrite each other's changes.
    The lock is usually outside the file's folder, so the folder can be moved away and restored as a whole.
    """

    def __init__(self, path: Path, mark: bytes, what: str, remedy: str, lock: Path) -> None:
        self.path = path
        self._lock = lock
        self._key_path = path.with_suffix(".key")
        self._mark = mark
        self._what = what
        self._remedy = remedy

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def version(self) -> tuple[int, int, int]:
        """Return a value that changes with every change of the document."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return 0, 0, 0
        return status.st_mtime_ns, status.st_ino, status.st_size

    @property
    def lost(self) -> bool:
        """Whether the document is missing although its key is there: it existed, and was not removed by ``remove``."""
        return self._key_path.exists() and not self.exists

    def changing(self) -> AbstractContextManager[None]:
        """Lock the file for a change. Waits for another shell's change up to 5 seconds, then raises ConflictError."""
        return locked(self._lock, self._what, patience=_PATIENCE_SECONDS)

    def save(self, value: Any) -> None:
        """Replace the document. Raises StoreError if its key is missing; DiskError."""
        with disk_errors("create", self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._key_path.exists():
            if self.exists:
                raise self._unreadable("its key file is missing")
            write_atomically(self._key_path, random_bytes(_KEY), mode=0o600)
        nonce = random_bytes(NONCE)
        sealed = Cipher(self._read(self._key_path)).encrypt(nonce, json.dumps(value).encode(), self._mark)
        write_atomically(self.path, self._mark + nonce + sealed, mode=0o600)

    def load(self) -> Any:
        """Return the document. Raises NotFoundError if there is none, StoreError if it cannot be read."""
        data = self._read(self.path)
        if not self._key_path.exists():
            raise self._unreadable("its key file is missing")
        if not data.startswith(self._mark):
            raise self._unreadable("its header is not valid")
        first = len(self._mark)
        try:
            return read_json(
                Cipher(self._read(self._key_path)).decrypt(
                    data[first : first + NONCE], data[first + NONCE :], self._mark
                )
            )
        except ValueError as error:
            raise self._unreadable("it is damaged, or its key file does not match") from error

    def remove(self) -> None:
        """Remove the document and its key. Raises NotFoundError if there is none."""
        if not self.exists:
            raise self._missing()
        self.path.unlink()
        self._key_path.unlink(missing_ok=True)

    def _missing(self) -> NotFoundError:
        return NotFoundError(f"{self._what} does not exist", hint=self._remedy)

    def _unreadable(self, why: str) -> StoreError:
        return StoreError(
            f"{self._what} {self.path} cannot be read: {why}",
            code="GGS-00307",
            hint=f"restore it and {self._key_path.name} from a backup, or remove both and create it again",
        )

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            raise StoreError(
                f"cannot read {path}: {error.strerror}", hint=f"make it readable, or restore {path.name} from a backup"
            ) from error
