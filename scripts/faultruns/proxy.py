"""A proxy before a server's socket, which can cut everything that passes through it, in the middle of a message."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from types import TracebackType

BLOCK = 1 << 16
Address = Path | tuple[str, int]
"""A Unix socket, or host and port."""


class Proxy:
    """Carries bytes between clients of ``listen`` and the server at ``server``: a thread each way, so that a client that does
    not read does not delay the others."""

    def __init__(self, listen: Address, server: Address) -> None:
        self._server = server
        self._listener = socket.socket(_family(listen))
        self._listener.bind(_plain(listen))
        if isinstance(listen, Path):
            listen.chmod(0o777)
        self._listener.listen(64)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._left: int | None = None
        self._cut = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._close_all()

    def cut_after(self, count: int, *, seconds: float) -> bool:
        """Cut every connection when so many more bytes have passed; whether that came about in time."""
        self._cut.clear()
        with self._lock:
            self._left = count
        return self._cut.wait(seconds)

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the end
            server = socket.socket(_family(self._server))
            try:
                server.connect(_plain(self._server))
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        """Carry bytes one way until an end is closed."""
        with contextlib.suppress(OSError):  # either end may go at any moment
            while data := one.recv(BLOCK):
                passing = self._passing(len(data))
                other.sendall(data[:passing])
                if passing < len(data):
                    self._close_all()
                    self._cut.set()
                    break
        self._close(one)
        self._close(other)

    def _passing(self, count: int) -> int:
        """How many of so many bytes pass before the cut."""
        with self._lock:
            left = self._left
            if left is None:
                return count
            self._left = left - count if left >= count else None
            return min(left, count)

    def _close_all(self) -> None:
        with self._lock:
            every = list(self._open)
        for each in every:
            self._close(each)

    def _close(self, one: socket.socket) -> None:
        with self._lock:
            if one not in self._open:
                return
            self._open.discard(one)
        with contextlib.suppress(OSError):  # the other end may have gone first
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET


def _plain(address: Address) -> str | tuple[str, int]:
    return str(address) if isinstance(address, Path) else address
