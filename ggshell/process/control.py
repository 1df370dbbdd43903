"""The control socket of a process: SEND requests as JSON lines over a Unix socket that only the owner may open.

The server never waits for a client: what cannot be sent at once stays in that client's buffer until it reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ggshell import errors
from ggshell.errors import GgsError, ProcessError

Handler = Callable[[str, dict[str, Any]], dict[str, Any]]
LONGEST_PATH = 100
LONGEST_REQUEST = 1 << 20
_BLOCK = 1 << 16


def socket_path(wanted: Path) -> Path:
    """Where a socket can really be: the wanted path, or a short one in a folder of the user when that is too long.

    Raises ProcessError when that folder belongs to somebody else.
    """
    if len(os.fsencode(wanted)) <= LONGEST_PATH:
        return wanted
    import hashlib
    import tempfile

    user = os.getuid()
    for temporary in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - the name below is checked to be ours
        folder = Path(temporary) / f"ggshell-{user}" / "control"
        path = folder / hashlib.sha256(os.fsencode(wanted)).hexdigest()[:24]
        if len(os.fsencode(path)) <= LONGEST_PATH:
            break
    for each in (folder.parent, folder):
        with contextlib.suppress(FileExistsError):
            each.mkdir(parents=True, mode=0o700)
        status = each.lstat()
        if status.st_uid != user or each.is_symlink():
            raise ProcessError(f"{each} belongs to somebody else", hint="use a home with a shorter path")
    folder.chmod(0o700)
    return path


class _Client:
    """A connection: what came in, and what is still to go out."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.pending = bytearray()

    def receive(self) -> bool:
        """Take what has come; False when the client has gone, or asks for too much."""
        try:
            data = self.connection.recv(_BLOCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.received += data
        return bool(data) and len(self.received) <= LONGEST_REQUEST

    def send(self) -> bool:
        """Send what can be sent at once; False when the client has gone."""
        try:
            while self.pending:
                del self.pending[: self.connection.send(self.pending)]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


class ControlServer:
    """Listens for requests.  ``interests`` says what to poll for; ``serve`` is called with what is ready."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self.path = socket_path(path)
        self._handler = handler
        self._clients: dict[int, _Client] = {}
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
        previous = os.umask(0o177)
        try:
            self._listener.bind(str(self.path))
        except OSError as error:
            self._listener.close()
            raise ProcessError(f"cannot listen at {self.path}: {error.strerror or error}") from error
        finally:
            os.umask(previous)
        self._listener.listen(16)
        self._listener.setblocking(False)

    def interests(self) -> dict[int, int]:
        """Descriptors and the poll events to wait for; a client with an answer under way is not read meanwhile."""
        wanted = {
            number: select.POLLOUT if client.pending else select.POLLIN for number, client in self._clients.items()
        }
        return {self._listener.fileno(): select.POLLIN, **wanted}

    def serve(self, ready: set[int]) -> None:
        """Take new connections, answer whole requests, go on with answers; never waits."""
        if self._listener.fileno() in ready:
            with contextlib.suppress(OSError):  # it has gone already
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                self._clients[connection.fileno()] = _Client(connection)
        for number in [number for number in self._clients if number in ready]:
            client = self._clients[number]
            stays = (bool(client.pending) or client.receive()) and self._answer(client)
            if not stays:
                del self._clients[number]
                client.connection.close()

    def close(self) -> None:
        """End all connections and remove the socket."""
        for client in self._clients.values():
            client.connection.close()
        self._clients.clear()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _answer(self, client: _Client) -> bool:
        """Answer the whole requests of a client, one after the other; False when it has gone."""
        while client.send():
            line, end, rest = bytes(client.received).partition(b"\n")
            if client.pending or not end:
                return True
            client.received[:] = rest
            client.pending += json.dumps(self._result(line), default=str).encode() + b"\n"
        return False

    def _result(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            verb, arguments = str(request["verb"]), dict(request.get("args", {}))
        except (ValueError, KeyError, TypeError) as error:
            return _refusal(ProcessError(f"this is no request: {type(error).__name__}: {error}"))
        try:
            return {"status": "ok", "result": self._handler(verb, arguments)}
        except GgsError as error:
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 - a question must not end the process that it is put to
            import traceback

            sys.stderr.write(traceback.format_exc())
            return _refusal(ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999"))


def _refusal(error: GgsError) -> dict[str, Any]:
    return {
        "status": "error",
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "where": error.where,
        "hint": error.hint,
    }


def _revived(answer: dict[str, Any]) -> GgsError:
    """The error that a process refused with, as the class that it was there."""
    kind = getattr(errors, str(answer.get("kind")), GgsError)
    if not (isinstance(kind, type) and issubclass(kind, GgsError)):
        kind = GgsError
    return kind(answer["message"], code=answer["code"], where=answer.get("where", ""), hint=answer.get("hint", ""))


def request(path: str, verb: str, *, timeout: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Ask a process; its result.  Raises ProcessError when it does not answer, and its own error when it refuses."""
    received = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(timeout)
            client.connect(path)
            client.sendall(json.dumps({"verb": verb, "args": arguments}).encode() + b"\n")
            while not received.endswith(b"\n"):
                data = client.recv(_BLOCK)
                if not data:
                    raise ProcessError("the process ended before it answered", code="GGS-00602")
                received += data
    except TimeoutError:
        raise ProcessError(
            f"the process does not answer within {timeout:g} seconds", code="GGS-00602", hint="ask again later"
        ) from None
    except OSError as error:
        raise ProcessError(f"the process does not answer: {error.strerror or error}", code="GGS-00602") from error
    try:
        answer = json.loads(received)
        if answer["status"] == "ok":
            result: dict[str, Any] = answer["result"]
            return result
        refusal = _revived(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise ProcessError(f"the process answers what is no answer: {error}", code="GGS-00602") from error
    raise refusal


def wait_readable(descriptors: list[int], timeout: float | None) -> set[int]:
    """The descriptors that can be read (or have ended) within a time in seconds."""
    poll = select.poll()
    for number in descriptors:
        poll.register(number, select.POLLIN)
    return {number for number, _ in poll.poll(None if timeout is None else max(0, timeout) * 1000)}
