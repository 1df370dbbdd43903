"""The few things that Bounded Recovery does to files, behind one interface, so that a test can stop the machine at each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from ggshell.errors import DiskError
from ggshell.files import sync_directory


class Disk(Protocol):
    """Files of one folder.  Whatever fails raises DiskError; what is missing is no failure of ``remove`` and ``names``."""

    def make_folder(self, folder: Path) -> None: ...

    def write(self, path: Path, blocks: Iterable[bytes], *, durable: bool) -> None:
        """A new file with this content; ``durable``: its content has reached the disk on return (its name may not have)."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def sync_folder(self, folder: Path) -> None:
        """Names given and taken before have reached the disk on return."""
        ...

    def names(self, folder: Path) -> list[str]: ...

    def read(self, path: Path) -> bytes: ...


class SystemDisk:
    """The machine's own files."""

    def make_folder(self, folder: Path) -> None:
        try:
            missing = [each for each in (folder, *folder.parents) if not each.exists()]
            folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            for each in missing:
                sync_directory(each.parent)
        except OSError as error:
            raise _failed("make the folder", folder, error) from error

    def write(self, path: Path, blocks: Iterable[bytes], *, durable: bool) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
            try:
                for block in blocks:
                    view = memoryview(block)
                    while view:
                        view = view[os.write(descriptor, view) :]
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # the write's own failure is what must be told
                path.unlink()
            raise _failed("write", path, error) from error

    def rename(self, old: Path, new: Path) -> None:
        try:
            old.replace(new)
        except OSError as error:
            raise _failed("rename", old, error) from error

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed("remove", path, error) from error

    def sync_folder(self, folder: Path) -> None:
        try:
            sync_directory(folder)
        except OSError as error:
            raise _failed("make the names durable in", folder, error) from error

    def names(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208 - bare names
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("list", folder, error) from error

    def read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise _failed("read", path, error) from error


def _failed(what: str, path: Path, error: OSError) -> DiskError:
    return DiskError(
        f"Bounded Recovery cannot {what} {path}: {error.strerror}", hint="free space or mend the permissions"
    )
