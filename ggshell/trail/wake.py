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
from pathlib import Path

from ggshell.trail.name import TrailName

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

    def wake(self) -> None:
        """Tell every listener; one that has gone is forgotten, one that is already told need not be told again."""
        try:
            listeners = os.listdir(self._folder)  # noqa: PTH208 - names only, at every flush
        except FileNotFoundError:  # nobody listens
            return
        for name in listeners:
            listener = f"{self._folder}/{name}"
            try:
                self._socket.sendto(b"!", listener)
            except BlockingIOError:
                continue
            except OSError:
                with contextlib.suppress(OSError):
                    Path(listener).unlink()

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
