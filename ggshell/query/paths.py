"""The trail files that a text refers to: a trail name, one file, a folder or a glob, local or on another file system.

Files of other file systems (``hdfs://``, ``s3a://`` and others that Arrow supports) are copied to a folder of the machine
that reads them. A copy is reused as long as size and time of the file do not change.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ggshell.errors import DiskError, NotFoundError, UsageError
from ggshell.sockets import open_private_folder
from ggshell.trail.name import TrailName

_FILE = re.compile(r"..(\d{9}|\d{6})")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://")
_BLOCK = 4 << 20
_HINT = "a trail (./dirdat/ea), a file of one (./dirdat/ea000000000), a folder or a glob"


def is_elsewhere(text: str) -> bool:
    """Whether a text names a location outside this machine's file system."""
    match = _SCHEME.match(text)
    return match is not None and match[1] != "file"


def trail_files(text: str, base: Path | None = None) -> list[str]:
    """The files that a text refers to, in the order of their sequence numbers.

    ``base``: the folder for relative paths. Raises NotFoundError if there are none, UsageError if one of them has the name
    of a trail file but is not one.
    """
    if is_elsewhere(text):
        return _files_elsewhere(text)
    path = Path(text.removeprefix("file://"))
    if base is not None and not path.is_absolute():
        path = base / path
    found = _local_files(path)
    if not found:
        raise NotFoundError(f"{text} is not a trail", hint=_HINT)
    for each in found:
        _require_trail_file(each)
    return [str(each) for each in found]


def _require_trail_file(path: Path) -> None:
    """Check that a trail file begins with a header record, or is still empty."""
    try:
        with path.open("rb") as file:
            begin = file.read(1)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", hint=_HINT) from error
    if begin not in (b"", b"F"):
        raise UsageError(f"{path} has the name of a trail file but is not one", hint=_HINT)


def _local_files(path: Path) -> list[Path]:
    if path.is_dir():
        return trail_files_among(path.iterdir())
    if path.is_file():
        if not _FILE.fullmatch(path.name):
            raise UsageError(f"{path} is not a trail file", hint=_HINT)
        return [path]
    if len(path.name) == 2 and not glob.has_magic(path.name):
        name = TrailName(path.parent, path.name)
        return [name.file(seqno) for seqno in name.sequences()]
    return trail_files_among(map(Path, glob.glob(str(path))))  # noqa: PTH207 - an absolute pattern


def trail_files_among(entries: Iterable[Path]) -> list[Path]:
    """The entries that are named like trail files, in order."""
    return sorted((each for each in entries if _FILE.fullmatch(each.name)), key=_order)


def _order(path: Path) -> tuple[str, str, int]:
    return (str(path.parent), path.name[:2], int(path.name[2:]))


def total_bytes(files: Iterable[str]) -> int:
    """The total size of local files."""
    return sum(Path(file).stat().st_size for file in files if not is_elsewhere(file))


def _file_system(text: str) -> tuple[Any, str]:
    """Arrow's file system for a location, and the path on it. Raises NotFoundError if it cannot be reached."""
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(text.replace("s3a://", "s3://", 1))
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"cannot reach {text}: {error}",
            hint="check the location and its credentials; Arrow's documentation lists what each file system needs",
        ) from None
    return system, path


def _files_elsewhere(text: str) -> list[str]:
    from pyarrow import fs

    folder, _, last = text.rstrip("/").rpartition("/")
    system, path = _file_system(folder)
    patterns = [last, last + "[0-9]*"]
    if not glob.has_magic(last) and system.get_file_info(f"{path}/{last}").type == fs.FileType.Directory:
        folder, path, patterns = text.rstrip("/"), f"{path}/{last}", ["*"]
    try:
        entries = system.get_file_info(fs.FileSelector(path))
    except OSError as error:
        raise NotFoundError(f"cannot read {text}: {error}") from None
    names = [entry.base_name for entry in entries if any(fnmatchcase(entry.base_name, each) for each in patterns)]
    found = [f"{folder}/{name}" for name in sorted(names) if _FILE.fullmatch(name)]
    if not found:
        raise NotFoundError(f"{text} is not a trail", hint=_HINT)
    return found


def local_copy(file: str) -> Path:
    """The local path of a file: the file itself, or a copy, together with what marks the end of the trail."""
    if not is_elsewhere(file):
        return Path(file.removeprefix("file://"))
    folder, _, name = file.rpartition("/")
    system, path = _file_system(folder)
    mine = Path(tempfile.gettempdir()) / f"ggshell-trails-{os.getuid()}"
    try:
        os.close(open_private_folder(mine))
    except OSError as error:
        raise DiskError(
            f"cannot use {mine}: {error.strerror}", hint="remove it, or set TMPDIR to another folder"
        ) from None
    place = mine / hashlib.sha256(folder.encode()).hexdigest()
    place.mkdir(exist_ok=True, mode=0o700)
    if not _copy(system, f"{path}/.{name[:2]}.durable", place):
        following = f"{int(name[2:]) + 1:0{len(name) - 2}d}"
        _copy(system, f"{path}/{name[:2]}{following}", place)
    _copy(system, f"{path}/{name}", place)
    return place / name


def _copy(system: Any, path: str, place: Path) -> bool:
    """Copy a file here unless an identical copy exists. Returns whether the file exists."""
    from pyarrow import fs

    info = system.get_file_info(path)
    if info.type != fs.FileType.File:
        return False
    target = place / path.rpartition("/")[2]
    time = info.mtime_ns or 0
    if target.exists() and (target.stat().st_size, target.stat().st_mtime_ns) == (info.size, time):
        return True
    partial = place / f".{target.name}.{os.getpid()}.partial"
    with system.open_input_stream(path) as source, partial.open("wb") as sink:
        while block := source.read(_BLOCK):
            sink.write(block)
    os.utime(partial, ns=(time, time))
    partial.replace(target)
    return True
