"""Waking readers: the writer tells those who wait that a trail has grown, so nobody polls.

Each reader binds a datagram socket in a folder that is the trail's own (in the temporary folder, named by a hash of the
trail's real path: a socket's path may have 107 bytes at most); the writer sends one byte to each without waiting.  A wake-up
that is lost costs time only: readers also look at the mark by themselves now and then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import tempfile
import time
from pathlib import Path

from ggshell.trail.name import TrailName

SETTLED_NANOSECONDS = 1_000_000_000
"""A folder may change twice within one tick of its file system's clock: a young list is not trusted."""
_ATTEMPTS = 10


def _folder(name: TrailName) -> Path:
    digest = hashlib.sha256(f"{name.folder.resolve()}/{name.prefix}".encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"ggshell-{os.getuid()}" / digest


class Waker:
    """The writer's side."""

    def __init__(self, name: TrailName) -> None:
        self._folder = str(_folder(name))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._listeners: list[str] = []
        self._looked = (0, 0)

    def wake(self) -> None:
        """Tell every listener; one that has gone is forgotten, one that is already told need not be told again."""
        for listener in self._who_listens():
            try:
                self._socket.sendto(b"!", listener)
            except BlockingIOError:
                continue
            except OSError:
                with contextlib.suppress(OSError):
                    Path(listener).unlink()

    def _who_listens(self) -> list[str]:
        """The listeners' sockets; the folder is only listed again when it has changed, or had just changed at the last look."""
        try:
            changed = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - at every flush
            known, looked = self._looked
            if changed != known or looked - changed < SETTLED_NANOSECONDS:
                looked = time.time_ns()
                self._listeners = [f"{self._folder}/{name}" for name in os.listdir(self._folder)]  # noqa: PTH208
                self._looked = (changed, looked)
        except FileNotFoundError:
            return []
        return self._listeners

    def close(self) -> None:
        self._socket.close()


class Listener:
    """The reader's side: readable when the trail has grown.  The folder goes with its last listener."""

    def __init__(self, name: TrailName) -> None:
        self._path = _folder(name) / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._bind()

    def _bind(self) -> None:
        folder = self._path.parent
        for attempt in range(_ATTEMPTS):
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                self._socket.bind(str(self._path))
            except FileNotFoundError:  # another listener just took the folder away
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def fileno(self) -> int:
        return self._socket.fileno()

    def drain(self) -> None:
        """Take what came, so that the next wait waits."""
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                continue

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others still listen
            self._path.parent.rmdir()
