"""A WebSocket client of the tests that sends whatever it is told to: bytes on a socket, with or without TLS."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any

from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.home.identity import ensure_identity
from ggshell.network.frames import PROTOCOL
from ggshell.network.opening import Challenge, Opening
from ggshell.network.proof import home_key, signed_text

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PATH = "/services/v2/targets?trail=da"


class RawSender:
    """One connection to a receiver. ``status``: of the answer to the request for a WebSocket; ``refusal``: its body."""

    def __init__(
        self, port: int, *, path: str = PATH, protocol: str = PROTOCOL, headers: str = "", upgrade: bool = True
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", port), 60)
        self.stream = context.wrap_socket(plain)
        self._buffer = b""
        self.status, self.refusal = 0, ""
        if upgrade:
            self.upgrade(path, protocol, headers)

    def upgrade(self, path: str, protocol: str, headers: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Protocol: {protocol}\r\n{headers}\r\n".encode("latin-1")
        )
        while b"\r\n\r\n" not in self._buffer:
            data = self.stream.recv(65536)
            if not data:
                return
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        if self.status != 101:
            while data := self.stream.recv(65536):
                self._buffer += data
            self.refusal = self._buffer.decode()

    def send(self, opcode: int, data: bytes, *, fin: bool = True, announce: int | None = None) -> None:
        """Send a frame of WebSocket; ``announce`` is its length if that is not the true one."""
        length = len(data) if announce is None else announce
        head = bytes([opcode | (0x80 if fin else 0)])
        if length < 126:
            head += bytes([0x80 | length])
        elif length < 1 << 16:
            head += b"\xfe" + length.to_bytes(2, "big")
        else:
            head += b"\xff" + length.to_bytes(8, "big")
        self.stream.sendall(head + bytes(4) + data)

    def receive(self) -> tuple[int, bytes] | None:
        """Return opcode and data of the next frame that is not a ping; None at the end of the connection."""
        while True:
            head = self._take(2)
            if head is None:
                return None
            length = head[1] & 0x7F
            if length >= 126:
                longer = self._take(2 if length == 126 else 8)
                length = int.from_bytes(longer or b"", "big")
            data = self._take(length)
            if data is None:
                return None
            if head[0] & 0x0F != PING:
                return head[0] & 0x0F, data
            self.send(PONG, data)

    def message(self) -> dict[str, Any]:
        """Return the next text message of the receiver."""
        found = self.receive()
        assert found is not None, "the receiver has closed the connection"
        assert found[0] == TEXT, found
        message: dict[str, Any] = json.loads(found[1])
        return message

    def end(self) -> tuple[int, str] | None:
        """Read up to the end; return the code and the reason of the receiver's goodbye, None if it said none."""
        goodbye = None
        try:
            while (found := self.receive()) is not None:
                if found[0] == CLOSE:
                    goodbye = int.from_bytes(found[1][:2], "big"), found[1][2:].decode()
                    self.send(CLOSE, found[1][:2])
        except OSError:  # the service need not wait until this side has read
            return goodbye
        return goodbye

    def open(self, root: Path, trail: str = "da", **changes: Any) -> dict[str, Any]:
        """Send the opening of a home and return the answer. ``changes``: fields that differ from a right opening.

        ``receiver``: the fingerprint that is signed instead of the one that the receiver announces; ``claimed``: the id of a
        home and a group that are signed instead of the home's own."""
        heard = self.message()
        challenge = Challenge(heard["nonce"], heard["release"], changes.pop("receiver", heard["receiver"]))
        identity, group = changes.pop("claimed", (ensure_identity(root).id, "DP1"))
        reads, unchecked = bool(changes.get("reads")), bool(changes.get("unchecked"))
        signed = Opening(trail, identity, "here", group, "1", reads=reads, unchecked=unchecked)
        certificate, signature = home_key(Home(root), SystemClock()).proof(signed_text(signed, challenge))
        opening = {
            "type": "opening",
            "trail": trail,
            "home": identity,
            "host": "here",
            "group": group,
            "release": "1",
            "reached": None,
            "certificate": certificate,
            "signature": signature,
        }
        self.send(TEXT, json.dumps(opening | changes).encode())
        return self.message()

    def close(self) -> None:
        self.stream.close()

    def _take(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            data = self.stream.recv(65536)
            if not data:
                return None
            self._buffer += data
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found
