"""The journals of requests to the service that are being carried out: one file for each object that a request changes.

A journal exists from the first step of a request to its end. A remaining one records what an interrupted request has to undo.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from ggshell.errors import StoreError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home

_ENDING: Final = ".json"
_GROUPS: Final = {
    GroupKind.EXTRACT: "extracts",
    GroupKind.REPLICAT: "replicats",
    GroupKind.PATH: "sources",
    GroupKind.RECVPATH: "targets",
}
"""The first word of the name under which requests change a group."""


def _folder(home: Home) -> Path:
    return home.root / "dirdb" / "unfinished"


def journal_of(home: Home, changed: str) -> Path:
    """Return the journal of requests that change an object, for example ``extracts EXT1``."""
    return _folder(home) / f"{quote(changed, safe=' ')}{_ENDING}"


def changed_objects(home: Home) -> list[str]:
    """Return the names of the objects that have a journal, or one that was being written, sorted. Raises StoreError."""
    folder = _folder(home)
    try:
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror}") from error
    written = [name.removeprefix(".").rpartition(_ENDING)[0] if name.startswith(".") else name for name in names]
    return sorted({unquote(name.removesuffix(_ENDING)) for name in written})


def take_over(home: Home, group: str, kind: GroupKind) -> None:
    """Forget what an interrupted request did with a group, because a later request changes the group."""
    journal_of(home, f"{_GROUPS[kind]} {group.upper()}").unlink(missing_ok=True)
