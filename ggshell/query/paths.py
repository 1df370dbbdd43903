"""The trail files that a text refers to: a trail name, one file, a folder or a glob, local or on another file system.

Files of other file systems (``s3://``, ``hdfs://`` and others of ``object_stores``) are read where they are, in ranges.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from ggshell.errors import NotFoundError, UsageError
from ggshell.object_stores import is_elsewhere, open_place, store_error
from ggshell.trail.name import TrailName

_FILE = re.compile(r"..(\d{9}|\d{6})")
_HINT = "a trail (./dirdat/ea), a file of one (./dirdat/ea000000000), a folder or a glob"


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


def _files_elsewhere(text: str) -> list[str]:
    from pyarrow import fs

    folder, _, last = text.rstrip("/").rpartition("/")
    place, patterns = open_place(folder), [last, last + "[0-9]*"]
    try:
        if not glob.has_magic(last):
            child = place.child(last)
            if place.system.get_file_info(child.path).type == fs.FileType.Directory:
                folder, place, patterns = child.text, child, ["*"]
        entries = place.system.get_file_info(fs.FileSelector(place.path))
    except OSError as error:
        raise store_error(folder, error) from error
    names = [entry.base_name for entry in entries if any(fnmatchcase(entry.base_name, each) for each in patterns)]
    found = [f"{folder}/{name}" for name in sorted(names) if _FILE.fullmatch(name)]
    if not found:
        raise NotFoundError(f"{text} is not a trail", hint=_HINT)
    return found
