"""Documents that only the REST API writes: configuration values, tasks, and settings of groups that no statement sets.

Each is a JSON file in ``dirdb/service/<kind>``, named by its percent-encoded name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from ggshell.errors import ConflictError, NotFoundError, StoreError, UsageError
from ggshell.files import disk_errors, read_json, write_atomically
from ggshell.home.home import Home

LONGEST_NAME: Final = 240
"""The longest name of a document, percent-encoded: file systems allow 255 bytes."""


class Documents:
    """The documents of one kind."""

    def __init__(self, home: Home, kind: str) -> None:
        self._kind = kind
        self._folder = home.root / "dirdb" / "service" / quote(kind, safe="")

    def names(self) -> list[str]:
        """Return the names of all documents, sorted."""
        return sorted(unquote(path.stem) for path in self._folder.glob("*.json")) if self._folder.is_dir() else []

    def find(self, name: str) -> dict[str, Any] | None:
        """Return a document, or None. Raises StoreError if its file is damaged."""
        path = self.path(name)
        try:
            found: dict[str, Any] = read_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{path} cannot be read: {error}", hint="restore it from a backup, or delete it"
            ) from error
        return found

    def get(self, name: str) -> dict[str, Any]:
        """Return a document. Raises NotFoundError."""
        found = self.find(name)
        if found is None:
            raise NotFoundError(f"{self._kind} {name} does not exist")
        return found

    def create(self, name: str, document: dict[str, Any]) -> None:
        """Create a document. Raises ConflictError if it exists."""
        if self.find(name) is not None:
            raise ConflictError(f"{self._kind} {name} already exists")
        self.put(name, document)

    def put(self, name: str, document: dict[str, Any]) -> None:
        """Create or replace a document. Raises DiskError."""
        with disk_errors("create", self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(name), json.dumps(document, indent=1).encode(), mode=0o600)

    def delete(self, name: str) -> None:
        """Delete a document. Raises NotFoundError."""
        self.get(name)
        self.path(name).unlink(missing_ok=True)

    def discard(self, name: str) -> None:
        """Delete a document if it exists, also a damaged one."""
        self.path(name).unlink(missing_ok=True)

    def path(self, name: str) -> Path:
        """Return a document's file. Raises UsageError for a name that is too long for a file's name."""
        encoded = quote(name, safe="")
        if len(encoded) > LONGEST_NAME:
            raise UsageError(f"{name[:80]}… is too long for the name of a {self._kind}")
        return self._folder / f"{encoded}.json"
