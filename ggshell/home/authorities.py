"""The certificates of authorities (CA) that a home keeps, in ``dirwlt/authorities``: one PEM file each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ggshell.errors import ConflictError, NotFoundError, UsageError
from ggshell.files import write_atomically
from ggshell.home.home import Home

FOLDER: Final = "dirwlt/authorities"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_ENDING: Final = ".crt"


def authority_names(home: Home) -> list[str]:
    """Return the names of the kept certificates, sorted."""
    folder = home.root / FOLDER
    return sorted(path.stem for path in folder.glob(f"*{_ENDING}")) if folder.is_dir() else []


def authority_file(home: Home, name: str) -> Path:
    """Return the file of a kept certificate. Raises NotFoundError."""
    if name not in authority_names(home):
        raise NotFoundError(f"certificate {name} does not exist")
    return _path(home, name)


def keep_authority(home: Home, name: str, pem: bytes, *, replace: bool) -> None:
    """Keep a certificate. Raises ConflictError if it exists, or NotFoundError if it is to be replaced and does not."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]} is not a valid certificate name", hint="use letters, digits, -, _ and .")
    if replace:
        authority_file(home, name)
    elif name in authority_names(home):
        raise ConflictError(f"certificate {name} already exists", hint="use PUT to replace it")
    (home.root / FOLDER).mkdir(parents=True, exist_ok=True)
    write_atomically(_path(home, name), pem, mode=0o644)


def delete_authority(home: Home, name: str) -> None:
    """Delete a kept certificate. Raises NotFoundError."""
    authority_file(home, name).unlink(missing_ok=True)


def _path(home: Home, name: str) -> Path:
    return home.root / FOLDER / f"{name}{_ENDING}"
