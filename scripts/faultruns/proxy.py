"""A proxy before a server's Unix socket, which can cut everything that passes through it, in the middle of a message."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from pathlib import Path
from types import TracebackType

BLOCK = 1 << 16


class Proxy:
    """One thread carries bytes between clients of ``listen`` and the server at ``server``."""

    def __init__(self, listen: Path, server: Path) -> None:
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(listen))
        listen.chmod(0o777)
        self._listener.listen(64)
        self._wake, self._woken = socket.socketpair()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        for each in (self._listener, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        self._left: int | None = None
        self._cut = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._wake.send(b"!")
        self._thread.join()
        for each in (*self._peers, self._listener, self._wake, self._woken):
            each.close()
        self._selector.close()

    def cut_after(self, count: int, *, seconds: float) -> bool:
        """Cut every connection when so many more bytes have passed; whether that came about in time."""
        self._cut.clear()
        self._left = count
        return self._cut.wait(seconds)

    def _run(self) -> None:
        while not self._over:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is not self._woken and isinstance(key.fileobj, socket.socket):
                    self._carry(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._server))
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _carry(self, one: socket.socket) -> None:
        if one not in self._peers:
            return  # cut within this look
        try:
            data = one.recv(BLOCK)
            left = self._left
            if left is not None and data and left < len(data):
                self._peers[one].sendall(data[:left])
                self._cut_all()
                return
            if not data:
                self._close(one)
                return
            self._peers[one].sendall(data)
        except OSError:
            self._close(one)
            return
        if left is not None:
            self._left = left - len(data)

    def _cut_all(self) -> None:
        self._left = None
        for one in list(self._peers):
            self._close(one)
        self._cut.set()

    def _close(self, one: socket.socket) -> None:
        other = self._peers.pop(one, None)
        if other is None:
            return
        del self._peers[other]
        for each in (one, other):
            self._selector.unregister(each)
            with contextlib.suppress(OSError):  # the other end may have gone first
                each.shutdown(socket.SHUT_RDWR)
            each.close()
