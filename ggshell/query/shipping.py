"""The package as one file that a session sends to the hosts of its cluster, which need Python and the libraries, not ggshell.

The file is made once for each content of the package and kept in the home. The modules that the tasks of queries use are in it
compiled as well, because every Python process of a host imports them again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import sys
import zipfile
from pathlib import Path
from typing import Final

import ggshell
from ggshell.errors import DiskError

_NAME: Final = "ggshell"
PACKAGE: Final = "spark.ggshell.package"
"""The setting with which a local server says that its Python processes have this package: the name of its file."""
_LEFT_OUT: Final = frozenset({"__pycache__", "_grammar", "demo", "service", "cli", "logdump", "move", "check"})
"""Parts that no task uses."""
_COMPILED: Final = frozenset({"query", "trail", "record", "home", "monitoring", "pipeline"})
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_UNCHECKED: Final = 0b01
"""The flag of compiled code that is valid without a check of its source (PEP 552)."""


def package_file(folder: Path) -> Path:
    """The package as a zip file in a folder of the home, made if the folder has none of this version. Raises DiskError."""
    root = Path(ggshell.__file__).parent
    sources = sorted(_sources(root))
    path = folder / f"{_NAME}-{_version(root, sources)}.zip"
    if path.exists():
        return path
    hidden = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(hidden, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in sources:
                _add(archive, root, each)
        for older in folder.glob(f"{_NAME}-*.zip"):
            older.unlink(missing_ok=True)
        hidden.replace(path)
    except OSError as error:
        hidden.unlink(missing_ok=True)
        raise DiskError(
            f"cannot write {path}: {error.strerror}", hint="free space or correct the permissions"
        ) from error
    return path


def _sources(root: Path) -> list[Path]:
    found: list[Path] = []
    for each in root.iterdir():
        if each.is_dir() and each.name not in _LEFT_OUT:
            found += each.rglob("*.py")
        elif each.suffix == ".py":
            found.append(each)
    return found


def _version(root: Path, sources: list[Path]) -> str:
    """What the content is recognized by: names, sizes and times of the sources, and the Python that compiles them."""
    digest = hashlib.sha256(sys.version.encode())
    for each in sources:
        status = each.stat()
        digest.update(f"{each.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _add(archive: zipfile.ZipFile, root: Path, source: Path) -> None:
    """Add a module, and its compiled form if tasks use it."""
    inside = source.relative_to(root)
    text = source.read_bytes()
    _write(archive, f"{_NAME}/{inside.as_posix()}", text)
    if len(inside.parts) == 1 or inside.parts[0] in _COMPILED:
        code = compile(text, f"{_NAME}.zip/{inside.as_posix()}", "exec", dont_inherit=True)
        flags = _UNCHECKED.to_bytes(4, "little")
        data = importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(text) + marshal.dumps(code)
        _write(archive, f"{_NAME}/{inside.with_suffix('.pyc').as_posix()}", data)


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member without a time of its own, so that equal content gives an equal file."""
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED, 6)
