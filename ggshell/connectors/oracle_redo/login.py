"""The login for a source that is a folder of redo: ``redo:///folder``."""

from __future__ import annotations

from pathlib import Path

from ggshell.errors import DatabaseError

SCHEME = "redo://"


def is_redo(login: str) -> bool:
    """Whether a login names a folder of redo."""
    return login.strip().lower().startswith(SCHEME)


def folder_of(login: str) -> Path:
    """The folder of ``redo:///folder``. Raises DatabaseError when it does not exist."""
    folder = Path(login.strip()[len(SCHEME) :])
    if not folder.is_dir():
        raise DatabaseError(
            f"redo folder {folder} does not exist",
            hint="use redo:///folder, with segments such as redo_1_000000001.jsonl",
        )
    return folder
