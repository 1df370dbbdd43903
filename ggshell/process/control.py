"""The control socket of a process: SEND requests as JSON lines over a Unix socket that only the owner may open."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ggshell.errors import GgsError, ProcessError

Handler = Callable[[str, dict[str, Any]], dict[str, Any]]
LONGEST_PATH = 100
LONGEST_REQUEST = 1 << 20


def socket_path(wanted: Path) -> Path:
    """Where a socket can really be: the wanted path, or a short one in the temporary folder when that is too long."""
    if len(os.fsencode(wanted)) <= LONGEST_PATH:
        return wanted
    folder = Path(tempfile.gettempdir()) / f"ggshell-{os.getuid()}" / "control"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / hashlib.sha256(os.fsencode(wanted)).hexdigest()[:24]


class ControlServer:
    """Listens for requests; ``serve`` is called when one of ``filenos`` is readable."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self.path = socket_path(path)
        self._handler = handler
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        previous = os.umask(0o177)
        try:
            self._listener.bind(str(self.path))
        except OSError as error:
            raise ProcessError(f"cannot listen at {self.path}: {error.strerror}") from error
        finally:
            os.umask(previous)
        self._listener.listen(16)
        self._listener.setblocking(False)

    def filenos(self) -> list[int]:
        return [self._listener.fileno(), *self._clients]

    def serve(self, ready: set[int]) -> None:
        """Take new connections and answer whole requests; never waits."""
        if self._listener.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                client, _ = self._listener.accept()
                client.setblocking(False)
                self._clients[client.fileno()] = (client, bytearray())
        for number in [number for number in self._clients if number in ready]:
            self._receive(number)

    def close(self) -> None:
        for client, _ in self._clients.values():
            client.close()
        self._clients.clear()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _receive(self, number: int) -> None:
        client, buffer = self._clients[number]
        try:
            data = client.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        buffer += data
        if not data or len(buffer) > LONGEST_REQUEST:
            del self._clients[number]
            client.close()
            return
        while b"\n" in buffer:
            line, _, rest = bytes(buffer).partition(b"\n")
            buffer[:] = rest
            self._answer(client, line)

    def _answer(self, client: socket.socket, line: bytes) -> None:
        try:
            request = json.loads(line)
            answer: dict[str, Any] = {"status": "ok", "result": self._handler(request["verb"], request.get("args", {}))}
        except GgsError as error:
            answer = {"status": "error", "code": error.code, "message": error.message, "hint": error.hint}
        except (ValueError, KeyError, TypeError) as error:
            answer = {"status": "error", "code": ProcessError.code, "message": f"bad request: {error}", "hint": ""}
        with contextlib.suppress(OSError):
            client.setblocking(True)
            client.settimeout(5)
            client.sendall(json.dumps(answer).encode() + b"\n")
            client.setblocking(False)


def request(path: str, verb: str, *, timeout: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Ask a process; its result.  Raises ProcessError when it does not answer, and its own error when it refuses."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(timeout)
            client.connect(path)
            client.sendall(json.dumps({"verb": verb, "args": arguments}).encode() + b"\n")
            received = bytearray()
            while not received.endswith(b"\n"):
                data = client.recv(1 << 16)
                if not data:
                    raise ProcessError("the process ended before it answered", code="GGS-00602")
                received += data
    except OSError as error:
        raise ProcessError(f"the process does not answer: {error.strerror or error}", code="GGS-00602") from error
    answer = json.loads(received)
    if answer["status"] != "ok":
        raise GgsError(answer["message"], code=answer["code"], hint=answer.get("hint", ""))
    result: dict[str, Any] = answer["result"]
    return result


def wait_readable(descriptors: list[int], timeout: float | None) -> set[int]:
    """The descriptors that can be read (or have ended) within a time in seconds."""
    poll = select.poll()
    for number in descriptors:
        poll.register(number, select.POLLIN)
    return {number for number, _ in poll.poll(None if timeout is None else max(0, timeout) * 1000)}
