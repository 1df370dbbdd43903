"""Unix sockets in folders of the home, including paths that are too long for a socket address.

The address of a Unix socket holds 107 bytes (103 on some systems). A longer path is reached through a file descriptor of
its folder, so every socket lies in its own folder. A folder is used only if it belongs to this user alone, and only sockets
are removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LONGEST_ADDRESS = 103
_DESCRIPTORS = "/proc/self/fd"
_OWNER = 0o600


def open_private_folder(path: Path | str) -> int:
    """Open a folder that belongs to this user alone, creating it if necessary, and return its file descriptor.

    Raises OSError; PermissionError if another user owns the folder or the path is a symbolic link.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)  # noqa: PTH102 - the path may be a string
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise PermissionError(errno.EPERM, "not a folder of this user", str(path)) from error
        raise
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "belongs to another user", str(path))
    if status.st_mode & 0o077:
        os.fchmod(descriptor, 0o700)
    return descriptor


def address(folder: int, name: str) -> str:
    """Return a short address for a socket in an open folder.

    The address uses the folder's descriptor, so it stays correct if another folder takes the same name. Raises OSError if
    the system does not support such addresses.
    """
    if not _has_descriptors():
        raise OSError(errno.ENAMETOOLONG, "the path of the socket is too long for this system")
    return f"{_DESCRIPTORS}/{folder}/{name}"


@cache
def _has_descriptors() -> bool:
    return Path(_DESCRIPTORS).is_dir()


def bind(listener: socket.socket, path: Path) -> None:
    """Bind a socket to a path of any length; only its owner may connect. Raises OSError.

    The mode is set before the socket is bound. The umask is not changed, because it applies to the whole process and other
    threads may create files at the same time. On systems that ignore the mode of an unbound socket, the private folder
    protects the socket until its mode is set.
    """
    with contextlib.suppress(OSError):
        os.fchmod(listener.fileno(), _OWNER)
    with _reached(path) as short:
        listener.bind(short)
        if os.stat(short).st_mode & 0o777 != _OWNER:  # noqa: PTH116 - a socket address, not a path
            os.chmod(short, _OWNER)  # noqa: PTH101


def connect(client: socket.socket, path: str) -> None:
    """Connect to the socket at a path of any length. Raises OSError."""
    with _reached(Path(path)) as short:
        client.connect(short)


def remove(path: Path) -> None:
    """Remove a socket if it exists; any other kind of file is left in place."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


@contextlib.contextmanager
def _reached(path: Path) -> Iterator[str]:
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield address(folder, path.name)
    finally:
        os.close(folder)
