"""A sender and receivers that break off, lie or send garbage: an error of a known class, and nothing is shown too early."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import PRODUCER, small
from websockets.exceptions import InvalidState
from websockets.frames import Frame as WebSocketFrame
from websockets.http11 import Request
from websockets.server import ServerProtocol

from ggshell.clock import FakeClock, SystemClock
from ggshell.errors import ConnectionLostError, GgsError, ProcessError, TrailError
from ggshell.network.frames import PROTOCOL, Acknowledgement, FrameKind, decode_frame, encode_acknowledgement
from ggshell.network.handshake import Sender
from ggshell.network.link import Link
from ggshell.network.opening import Challenge, Opened, encode_message
from ggshell.network.remote_files import RemoteTrailFiles
from ggshell.trail.writer import TrailWriter
from ggshell.types import TrailPosition

Answer = Callable[[bytes, int, TrailPosition], "str | bytes | None"]
"""What a receiver answers to a frame: given the frame, the bytes taken with it, and the place that is durable with it."""
CHALLENGE = encode_message(Challenge("nonce", "1", ""))
OPENED = encode_message(Opened("/tmp/target", "da"))  # noqa: S108 (nothing is written there)


def honest(_: bytes, taken: int, durable: TrailPosition) -> bytes:
    return encode_acknowledgement(Acknowledgement(durable, taken))


class Receiver:
    """A receiver in a thread that keeps nothing; it closes the connection after ``limit`` bytes of answers."""

    def __init__(self, stream: socket.socket, answers: list[str | bytes], answer: Answer, limit: int) -> None:
        self._stream, self._answers, self._answer, self._limit = stream, answers, answer, limit
        self.sent = 0
        self._taken, self._durable = 0, TrailPosition(0, 0)
        self._protocol = ServerProtocol(subprotocols=[PROTOCOL], max_size=None)  # type: ignore[list-item]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._stream, contextlib.suppress(OSError, InvalidState):  # the sender closes when it refuses
            while self.sent < self._limit and (data := self._stream.recv(1 << 16)):
                self._protocol.receive_data(data)
                for event in self._protocol.events_received():
                    self._take(event)
                self._pass()

    def _take(self, event: object) -> None:
        if isinstance(event, Request):
            self._protocol.send_response(self._protocol.accept(event))
            self._say(self._answers.pop(0))
        elif isinstance(event, WebSocketFrame) and event.opcode == 1:
            self._say(self._answers.pop(0))
        elif isinstance(event, WebSocketFrame) and event.opcode == 2:
            self._taken += len(event.data)
            frame = decode_frame(bytes(event.data))
            if frame.end is not None:
                self._durable = frame.end.position
            self._say(self._answer(bytes(event.data), self._taken, self._durable))

    def _say(self, message: str | bytes | None) -> None:
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        elif message is not None:
            self._protocol.send_binary(message)

    def _pass(self) -> None:
        data = b"".join(self._protocol.data_to_send())[: self._limit - self.sent]
        self.sent += len(data)
        self._stream.sendall(data)


@contextmanager
def sending(
    answer: Answer = honest, answers: tuple[str | bytes, ...] = (CHALLENGE, OPENED), limit: int = 1 << 30
) -> Iterator[tuple[TrailWriter, Receiver]]:
    """A writer that writes three transactions to a receiver."""
    near, far = socket.socketpair()
    receiver = Receiver(far, list(answers), answer, limit)
    link = Link(near, "the receiver", SystemClock())
    try:
        link.upgrade("ws://127.0.0.1/services/v2/targets?trail=da", {})
        files = RemoteTrailFiles(link, "the receiver", "da", Sender("home", "DP1", None), None)
        with closing(TrailWriter.over(files, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
            for csn in range(1, 4):
                writer.write(small(csn))
                writer.flush()
            yield writer, receiver
    finally:
        link.close()
        receiver.thread.join()


def test_a_connection_that_ends_after_any_byte_of_an_answer_is_a_lost_connection() -> None:
    with sending() as (_, receiver):
        total = receiver.sent
    for limit in range(total):
        with pytest.raises(ConnectionLostError), sending(limit=limit):
            pass


@settings(max_examples=examples(60))
@given(st.integers(0, 2), st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_whatever_a_receiver_says_the_sender_ends_with_an_error_that_names_it(step: int, message: str | bytes) -> None:
    answers: list[str | bytes] = [CHALLENGE, OPENED]
    if step < 2:
        answers[step] = message
    with (
        pytest.raises((ProcessError, TrailError, ConnectionLostError)),
        sending(lambda *_: message if step == 2 else None, tuple(answers)),
    ):
        pass


@pytest.mark.parametrize(
    "change",
    [
        {"end": [0, 100, "", 0], "header": "AAAA"},
        {"end": [0, 100, "", 0], "header": "no Base64"},
        {"end": [0, 100, "", 0], "header": ""},
        {"end": [0, 100, "x/y", 0]},
        {"end": [-1, 100, "", 0]},
        {"end": "x"},
        {"folder": None},
    ],
    ids=repr,
)
def test_an_opened_trail_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(GgsError) as refused, sending(answers=(CHALLENGE, json.dumps(json.loads(OPENED) | change))):
        pass
    assert refused.value.code in ("GGS-00955", "GGS-00957")


@pytest.mark.parametrize(
    ("taken", "place"),
    [(1, (0, 0)), (0, (0, 1)), (0, (1, 0)), (-1 << 40, (0, 0)), (0, (0, -1)), (0, (-1, 0))],
    ids=["more bytes", "a later place", "a later file", "fewer bytes", "an earlier place", "an earlier file"],
)
def test_a_receiver_that_acknowledges_something_else_is_refused(taken: int, place: tuple[int, int]) -> None:
    """Too much would let the sender forget rows that are nowhere; too little would let it wait for ever."""

    def lying(frame: bytes, true: int, durable: TrailPosition) -> bytes:
        if decode_frame(frame).kind is FrameKind.CREATE:
            return honest(frame, true, durable)
        said = TrailPosition(max(0, durable.seqno + place[0]), max(0, durable.rba + place[1]))
        if place[0] < 0:
            said = TrailPosition(0, 0)
        return encode_acknowledgement(Acknowledgement(said, max(0, true + taken)))

    with pytest.raises(TrailError, match="acknowledges"), sending(lying):
        pass


def test_the_reason_of_a_refusal_is_told_even_if_the_connection_has_ended_meanwhile() -> None:
    refusal = '{"type":"refusal","code":"GGS-00303","message":"no space","hint":"free space","again":false}'
    near, far = socket.socketpair()
    receiver = Receiver(far, [CHALLENGE, OPENED], lambda *_: refusal, 1 << 30)
    link = Link(near, "the receiver", SystemClock())
    link.upgrade("ws://127.0.0.1/services/v2/targets?trail=da", {})
    files = RemoteTrailFiles(link, "the receiver", "da", Sender("home", "DP1", None), None)
    files.create(0, b"x" * 100)
    far.shutdown(socket.SHUT_RD)
    receiver.thread.join()
    with pytest.raises(ProcessError, match="no space"):
        for _ in range(3):
            files.append(b"x" * 1000)
            files.check()
    files.close()
