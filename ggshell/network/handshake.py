"""The beginning of a connection on the side that dialed it: the challenge, the proof of who dials, and the answer."""

from __future__ import annotations

import contextlib
import socket
from typing import Final, NamedTuple, TypeVar

from ggshell import __version__
from ggshell.errors import ConnectionLostError, ProcessError, StoreError
from ggshell.network.link import LOST, NOT_A_RECEIVER, Link
from ggshell.network.opening import (
    Asked,
    Challenge,
    ExtractAction,
    ExtractAnswer,
    ExtractRequest,
    Opened,
    Opening,
    Refusal,
    TaskAnswer,
    TaskRequest,
    decode_message,
    encode_message,
)
from ggshell.network.proof import HomeKey, signed_text

ANSWER_SECONDS: Final = 60.0
"""How long the other side may take to open its trail: it may have to scan the last file."""

_Answer = TypeVar("_Answer", Challenge, Opened, TaskAnswer, ExtractAnswer)


class Sender(NamedTuple):
    """Who dials, to send or to read a trail: the id of the home, the group, and the home's key.

    ``key`` is None if there is none to sign with. ``signs_in``: the connection itself signs in, as a user; the home then
    also proves its identity, but only to a home that it expects.
    """

    home: str
    group: str
    key: HomeKey | None
    signs_in: bool = False

    def opening(self, trail: str) -> Opening:
        """Return an opening for a trail as the other home names it."""
        return Opening(trail, self.home, socket.gethostname(), self.group, __version__)

    def task_request(self, trail: str, task: str, load: str) -> TaskRequest:
        """Return a request for the task of a load; ``trail`` is where the load is sent."""
        return TaskRequest(trail, self.home, socket.gethostname(), self.group, __version__, task, load)

    def extract_request(self, extract: str, action: ExtractAction) -> ExtractRequest:
        """Return a request of the alias of a passive Extract."""
        return ExtractRequest("", self.home, socket.gethostname(), self.group, __version__, extract, action)


def open_trail(link: Link, where: str, opening: Opening, sender: Sender) -> Opened:
    """Prove the identity of this home, send the opening, and return the answer. ``where``: the other side, for messages.

    Raises ConnectionLostError, ProcessError if the other side refuses or is another home than expected, StoreError.
    """
    introduce(link, where, opening, sender)
    return expect(link.receive(ANSWER_SECONDS), Opened, where)


def introduce(link: Link, where: str, asked: Asked, sender: Sender) -> None:
    """Answer the challenge with what is asked for, signed with the home's key. Raises as ``open_trail`` does."""
    challenge = expect(link.receive(ANSWER_SECONDS), Challenge, where)
    if sender.key is not None and sender.signs_in:
        with contextlib.suppress(ProcessError, StoreError):  # the user proves enough
            _sign(link, asked, challenge, sender.key)
    elif sender.key is not None:
        _sign(link, asked, challenge, sender.key)
    link.send(encode_message(asked))


def _sign(link: Link, asked: Asked, challenge: Challenge, key: HomeKey) -> None:
    link.home.require(challenge.receiver)
    asked.unchecked = link.home.is_unknown
    asked.certificate, asked.signature = key.proof(signed_text(asked, challenge))


def expect(message: str | bytes | None, kind: type[_Answer], where: str) -> _Answer:
    """Return a message of the other side that must be of this kind.

    Raises ConnectionLostError if there is none, the error of a refusal, and ProcessError for anything else."""
    if message is None:
        raise ConnectionLostError(f"{where} does not answer", code=LOST)
    found = decode_message(message) if isinstance(message, str) else None
    if isinstance(found, Refusal):
        raise refused(where, found)
    if not isinstance(found, kind):
        raise ProcessError(f"{where} is not a service that exchanges trails", code=NOT_A_RECEIVER)
    return found


def refused(where: str, refusal: Refusal) -> ConnectionLostError | ProcessError:
    """Return the error of a refusal."""
    kind = ConnectionLostError if refusal.again else ProcessError
    return kind(f"{where}: {refusal.message}", code=refusal.code, hint=refusal.hint)
