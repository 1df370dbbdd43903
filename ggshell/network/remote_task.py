"""Asks the service of another home for a task: to prepare it, or to start it for a load and say how it ended."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeVar

from ggshell import __version__
from ggshell.errors import ConnectionLostError, ProcessError
from ggshell.network.link import LOST, NOT_A_RECEIVER, Link
from ggshell.network.opening import Challenge, Refusal, TaskAnswer, TaskRequest, decode_message, encode_message
from ggshell.network.proof import signed_text
from ggshell.network.remote_files import ANSWER_SECONDS, Sender

_Answer = TypeVar("_Answer", Challenge, TaskAnswer)


def ask_for_task(
    link: Link, where: str, sender: Sender, trail: str, task: str, load: str, wait: Callable[[int], bool]
) -> TaskAnswer:
    """Return the answer to a request for a task.

    ``load``: the load to apply, empty to prepare only. ``wait``: waits a while for a descriptor, false if the process is to
    stop. Raises ConnectionLostError, and ProcessError if the other home refuses.
    """
    challenge = _answer(link.receive(ANSWER_SECONDS), Challenge, where)
    proof = ("", "")
    if sender.key is not None:
        proof = sender.key.proof(signed_text(challenge.nonce, trail, sender.home, sender.group))
    asked = TaskRequest(trail, sender.home, socket.gethostname(), sender.group, __version__, task, load, *proof)
    link.send(encode_message(asked))
    while (message := link.receive(0.0)) is None:
        if not wait(link.fileno()):
            raise ConnectionLostError("this process is stopping", code=LOST)
    return _answer(message, TaskAnswer, where)


def _answer(message: str | bytes | None, kind: type[_Answer], where: str) -> _Answer:
    if message is None:
        raise ConnectionLostError(f"{where} does not answer", code=LOST)
    found = decode_message(message) if isinstance(message, str) else None
    if isinstance(found, Refusal):
        error = ConnectionLostError if found.again else ProcessError
        raise error(f"{where}: {found.message}", code=found.code, hint=found.hint)
    if not isinstance(found, kind):
        raise ProcessError(f"{where} does not answer as a receiver of loads", code=NOT_A_RECEIVER)
    return found
