"""Crash-safe file operations: atomic writes, locks and directory syncs."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from ggshell.clock import pause
from ggshell.errors import ConflictError, DiskError

CLOSED: Final = 0o027
"""The umask of a home: the group cannot write a file and others cannot read it.

Files have mode 0640, folders 0750, secrets and sockets 0600.
"""


def close_to_others() -> None:
    """Add ``CLOSED`` to this process's umask, so that it also applies to libraries (DuckDB, the lakes') and to Java."""
    os.umask(os.umask(CLOSED) | CLOSED)


def read_json(data: str | bytes | bytearray) -> Any:
    """Parse a JSON text. Raises ValueError, also if the text is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def write_atomically(path: Path, data: bytes, *, keep_previous: bool = False, mode: int = 0o640) -> None:
    """Replace a file so that a crash leaves either the old or the new content, never a mixture.

    Steps: temporary file, fsync, rename, fsync of the folder. With ``keep_previous``, the previous content is kept in
    ``<name>.previous``. Raises DiskError, which names the path; the old file is then unchanged.
    """
    with replacing(path, keep_previous=keep_previous, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path, *, keep_previous: bool = False, mode: int = 0o640) -> Iterator[BinaryIO]:
    """Replace a file as ``write_atomically`` does, by what the block writes. If the block raises, the old file is unchanged."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if keep_previous:
            _keep_previous(path)
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise DiskError(f"cannot write {path}: {error.strerror}", hint=remedy(path)) from error
        raise


@contextlib.contextmanager
def disk_errors(action: str, path: Path, hint: str = "") -> Iterator[None]:
    """Convert an OSError in the block to a DiskError, which says that the action on a path is not possible.

    ``hint``: by default that of ``remedy``.
    """
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot {action} {path}: {error.strerror}", hint=hint or remedy(path)) from error


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that ended while they were writing a file."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        process = each.name.rsplit(".", 2)[1]
        if each.suffix in (".tmp", ".link") and process.isdecimal() and not Path("/proc", process).exists():
            each.unlink(missing_ok=True)


def remedy(path: Path) -> str:
    """Return the hint for a file that cannot be written."""
    if path.is_dir():
        return "a folder has this name: remove it, then start again"
    return "free space or correct the permissions, then start again"


def _keep_previous(path: Path) -> None:
    """Keep the current content as ``<name>.previous``: hard-link it, then rename the link, so a file always exists."""
    if not path.exists():
        return
    link = path.with_name(f".{path.name}.{os.getpid()}.link")
    link.unlink(missing_ok=True)
    os.link(path, link)
    kept = path.with_name(path.name + ".previous")
    try:
        link.replace(kept)
    except OSError as error:
        link.unlink(missing_ok=True)
        raise DiskError(f"cannot write {kept}: {error.strerror}", hint=remedy(kept)) from error


def sync_directory(path: Path) -> None:
    """Sync a folder so that a rename or a new file in it is durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_RETRY_SECONDS: Final = 0.02


def _lock(descriptor: int, *, wait: bool, patience: float) -> None:
    """Lock a file. Raises BlockingIOError if another process holds the lock for longer than ``patience`` seconds; OSError."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            pause(_RETRY_SECONDS)  # the kernel has no lock with a time limit
        else:
            return


@contextlib.contextmanager
def locked(
    path: Path, what: str, *, code: str = "OGG-01454", wait: bool = False, patience: float = 0.0
) -> Iterator[None]:
    """Hold an exclusive lock on a file during the block. The lock ends with the process, however the process ends.

    Raises ConflictError immediately if another process holds the lock, or after ``patience`` seconds; with ``wait``, for short
    changes only, it waits for the other process instead. Raises DiskError if the file cannot be opened, or the file system has
    no locks.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise DiskError(f"cannot open lock file {path}: {error.strerror}", hint=remedy(path)) from error
    try:
        try:
            _lock(descriptor, wait=wait, patience=patience)
        except BlockingIOError as error:
            raise ConflictError(f"{what} is locked by another process", code=code, where=str(path)) from error
        except OSError as error:
            hint = "use a file system that supports locks of files (flock)"
            raise DiskError(f"cannot lock {path}: {error.strerror}", hint=hint) from error
        yield
    finally:
        os.close(descriptor)
