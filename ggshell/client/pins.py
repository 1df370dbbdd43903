"""Pinned certificates: the fingerprint that a service had when it was trusted first, one line for each host and port.

The file ``known_services`` is in the user's folder. A line is ``host:port SHA256:AA:BB:…``; lines that begin with ``#`` are
comments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ggshell.errors import StoreError
from ggshell.files import disk_errors, locked, write_atomically
from ggshell.network.trust import Pin

FILE: Final = "known_services"
_PREFIX: Final = "SHA256:"


class Pins:
    """The pinned certificates of a user. ``folder``: the user's folder."""

    changed_hint = (
        "if the service has a new certificate, compare it with INFO SERVICE there, remove this line and CONNECT"
    )

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def find(self, place: str) -> Pin | None:
        """Return the pin of a host and port, or None. Raises StoreError for a file that is not valid."""
        for number, line in enumerate(self._text().splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or not words[1].upper().startswith(_PREFIX):
                raise StoreError(
                    "the line is not a pinned certificate",
                    where=f"{self.path}:{number}",
                    hint="a line is host:port SHA256:fingerprint; correct or remove it",
                )
            if words[0].lower() == place.lower():
                return Pin(words[1].upper().removeprefix(_PREFIX), f"{self.path}:{number}")
        return None

    def others(self, place: str) -> frozenset[str]:
        """No certificate is trusted without a pin."""
        return frozenset()

    def add(self, place: str, fingerprint: str) -> None:
        """Pin a certificate. Raises DiskError, StoreError."""
        with disk_errors("create", self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_suffix(".lock"), "the file of pinned certificates", wait=True):
            text = self._text()
            text += "" if text.endswith("\n") or not text else "\n"
            write_atomically(self.path, f"{text}{place} {_PREFIX}{fingerprint}\n".encode(), mode=0o600)

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise StoreError(f"cannot read {self.path}: {reason}") from error
