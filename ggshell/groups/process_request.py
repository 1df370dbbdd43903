"""Sends a request to the control socket of a process, as SEND does (``control`` is the other side)."""

from __future__ import annotations

import json
from typing import Any

from ggshell import errors
from ggshell.errors import GgsError, ProcessError
from ggshell.files import read_json


def request(path: str, verb: str, *, timeout: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Send a request to a process and return the result.

    Raises ProcessError if the process does not answer, and the process's own error if it refuses.
    """
    import socket  # not loaded for commands that ask no process

    from ggshell import sockets

    received = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(timeout)
            sockets.connect(client, path)
            client.sendall(json.dumps({"verb": verb, "args": arguments}).encode() + b"\n")
            while not received.endswith(b"\n"):
                data = client.recv(1 << 16)
                if not data:
                    raise ProcessError("the process ended before it answered", code="GGS-00602")
                received += data
    except TimeoutError:
        raise ProcessError(
            f"the process did not answer within {timeout:g} seconds", code="GGS-00602", hint="try again later"
        ) from None
    except OSError as error:
        raise ProcessError(f"the process is not responding: {error.strerror or error}", code="GGS-00602") from error
    try:
        answer = read_json(received)
        if answer["status"] == "ok":
            result: dict[str, Any] = answer["result"]
            return result
        refusal = _revived(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise ProcessError(f"the answer of the process is not valid: {error}", code="GGS-00602") from error
    raise refusal


def _revived(answer: dict[str, Any]) -> GgsError:
    """Return the error with which a process refused a request, in its original class."""
    kind = getattr(errors, str(answer.get("kind")), GgsError)
    if not (isinstance(kind, type) and issubclass(kind, GgsError)):
        kind = GgsError
    return kind(answer["message"], code=answer["code"], where=answer.get("where", ""), hint=answer.get("hint", ""))
