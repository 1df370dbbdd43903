"""Atomic writes, locks and directory syncs.  What a crash may interrupt goes through here."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ggshell.errors import ConflictError, DiskError


def write_atomically(path: Path, data: bytes, *, keep_previous: bool = False, mode: int = 0o640) -> None:
    """Replace a file so that a crash leaves the old or the new content, never a mixture.

    Temporary file, fsync, rename, fsync of the folder.  With ``keep_previous`` the content before stays under the
    name + ``.previous``.  Raises DiskError naming the path; the old file is then untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if keep_previous:
            _keep_previous(path)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise DiskError(
            f"cannot write {path}: {error.strerror}", hint="free space or mend the permissions, then start again"
        ) from error


def _keep_previous(path: Path) -> None:
    """Give the present content a second name, itself without a moment where neither name exists."""
    if not path.exists():
        return
    link = path.with_name(f".{path.name}.{os.getpid()}.link")
    link.unlink(missing_ok=True)
    os.link(path, link)
    link.replace(path.with_name(path.name + ".previous"))


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, what: str, *, code: str = "OGG-01454") -> Iterator[None]:
    """Hold an exclusive lock on a file for the block's length; it goes with the process, however that ends.

    Raises ConflictError at once when another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConflictError(f"{what} is held by another process", code=code, where=str(path)) from error
        yield
    finally:
        os.close(descriptor)
