"""The sockets that wake readers of a trail: the writer signals that it has grown, so that readers need not poll.

Each reader binds a datagram socket in a folder next to the trail's files (``.ea.wake``), which belongs to the writer's user
alone. The writer sends one byte to each socket without waiting. Both access the folder through a descriptor that is checked
when it is opened, so the folder cannot be swapped for another one, and the writer removes only sockets that readers left. A
lost wake-up only costs time, because readers also check the mark from time to time. A reader of another user relies on that
check alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import time

from ggshell.sockets import address, open_private_folder
from ggshell.trail.name import TrailName

SETTLED_NANOSECONDS = 1_000_000_000
"""A folder can change twice within one tick of the file system's clock, so a list read this soon after a change is stale."""
_NAME = re.compile(r"\d+-[0-9a-f]{8}")


def _folder(name: TrailName) -> str:
    return f"{name.folder}/.{name.prefix}.wake"


class Waker:
    """The writer's side."""

    def __init__(self, name: TrailName) -> None:
        self._path = _folder(name)
        self._folder = -1
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._listeners: list[str] = []
        self._looked = (0, 0)

    def wake(self) -> None:
        """Signal every listener; one that no longer exists is removed, one whose socket is already full is skipped."""
        for listener in self._who_listens():
            try:
                self._socket.sendto(b"!", address(self._folder, listener))
            except BlockingIOError:
                continue
            except OSError:
                self._remove(listener)

    def _who_listens(self) -> list[str]:
        """Return the listeners' names.

        The folder is listed again only if it has changed, or if it had changed just before it was last listed."""
        try:
            status = self._status()
            known, looked = self._looked
            if status.st_mtime_ns != known or looked - status.st_mtime_ns < SETTLED_NANOSECONDS:
                looked = time.time_ns()
                self._listeners = [each for each in os.listdir(self._folder) if _NAME.fullmatch(each)]  # noqa: PTH208
                self._looked = (status.st_mtime_ns, looked)
        except OSError:  # without the folder there are no listeners: readers check the mark themselves
            return []
        return self._listeners

    def _status(self) -> os.stat_result:
        """Return the folder's status; opens the folder again if it was removed."""
        if self._folder >= 0:
            status = os.fstat(self._folder)
            if status.st_nlink:
                return status
            os.close(self._folder)
            self._folder, self._looked = -1, (0, 0)
        self._folder = open_private_folder(self._path)
        return os.fstat(self._folder)

    def _remove(self, listener: str) -> None:
        """Remove the socket of a reader that has ended; other files are not removed."""
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(listener, dir_fd=self._folder, follow_symlinks=False).st_mode):
                os.unlink(listener, dir_fd=self._folder)

    def close(self) -> None:
        self._socket.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


class Listener:
    """The reader's side: readable when the trail has grown. If the folder belongs to another user, it is never woken."""

    def __init__(self, name: TrailName) -> None:
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._path = _folder(name)
        self._folder = -1
        self._bind()

    def _bind(self) -> None:
        """Start to listen; the trail's folder may not exist yet, belong to another user, or not be writable."""
        with contextlib.suppress(OSError):
            self._folder = open_private_folder(self._path)
            os.fchmod(self._socket.fileno(), 0o600)  # the bound socket file gets this mode, independent of the umask
            self._socket.bind(address(self._folder, self._name))

    def fileno(self) -> int:
        return self._socket.fileno()

    def drain(self) -> None:
        """Discard the received wake-ups, so that the next wait blocks; binds the socket first if that failed before."""
        if self._folder < 0:
            self._bind()
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                continue

    def close(self) -> None:
        self._socket.close()
        if self._folder >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)
            os.close(self._folder)
            self._folder = -1
