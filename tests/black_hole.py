"""A network that loses everything from a given moment: a proxy that accepts bytes and forwards none."""

from __future__ import annotations

import contextlib
import socket
import threading


class BlackHole:
    """Forwards ``port`` to a server on this machine; after ``swallow`` nothing arrives and no error is reported.

    Connections that are opened after ``swallow`` stay open and silent. Without ``target`` there is no server at all.
    """

    def __init__(self, target: int = 0) -> None:
        self._target = target
        self._passing = threading.Event()
        if target:
            self._passing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connections(self) -> int:
        """How many clients have connected, if it forwards to no server."""
        return len(self._sockets) - 1

    def swallow(self) -> None:
        self._passing.clear()

    def pass_on(self) -> None:
        """Forward new connections; the existing ones are closed on both sides."""
        self._passing.set()
        for each in self._sockets[1:]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self._passing.is_set():
                    self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        self._sockets.append(server)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self._passing.is_set():
                    sink.sendall(data)
            if self._passing.is_set():
                sink.shutdown(socket.SHUT_WR)
