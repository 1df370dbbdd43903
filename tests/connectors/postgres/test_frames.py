"""The replication connection returns the same messages however its bytes are divided."""

from __future__ import annotations

import itertools
import struct

import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.connectors.postgres import pgoutput, wire
from ggshell.connectors.postgres.protocol import message
from ggshell.connectors.postgres.wire import BLOCK, COPY_DATA, Inbox, ended
from ggshell.errors import ConnectionLostError

KINDS = b"BCRIUDTSEcAMOY"
LOOKS_LIKE_ONE = b"d\0\0\0\x1fw"


def log_data(kind: int, content: bytes) -> bytes:
    return message(COPY_DATA, b"w" + bytes(24) + bytes([kind]) + content)


contents = st.one_of(st.binary(max_size=300), st.just(LOOKS_LIKE_ONE * 9), st.integers(0, 9000).map(bytes))
keepalives = st.booleans().map(
    lambda wanted: message(COPY_DATA, struct.pack(">BQqB", pgoutput.KEEPALIVE, 7, 8, wanted))
)
notices = st.binary(max_size=40).map(lambda body: message(ord("N"), body))
messages = st.one_of(
    st.builds(log_data, st.sampled_from(KINDS), contents),
    st.builds(log_data, st.sampled_from(b"IUD"), contents),
    keepalives,
    notices,
)


def received(stream: bytes, cuts: list[int]) -> tuple[list[bytes], list[int]]:
    """All messages of a stream that arrives in parts, and the numbers of those without rows."""
    inbox, found, others = Inbox(), [], []
    edges = sorted({0, *(cut % (len(stream) + 1) for cut in cuts), len(stream)})
    for first, end in itertools.pairwise(edges):
        inbox.put(stream[first:end])
        taken = inbox.take()
        others += [len(found) + number for number in taken.others]
        found += [taken.data[low:high] for low, high in zip(taken.edges, taken.edges[1:], strict=False)]
    return found, others


@settings(max_examples=examples(150))
@given(
    st.lists(messages, min_size=1, max_size=60),
    st.lists(st.integers(0, 1 << 30), max_size=12),
    st.sampled_from([16, 1 << 30]),
)
def test_messages_are_the_same_however_their_bytes_are_divided(sent: list[bytes], cuts: list[int], leap: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "FEW_BYTES", leap)
        found, others = received(b"".join(sent), cuts)
    assert found == sent
    assert others == [
        number
        for number, item in enumerate(sent)
        if item[:1] != b"d" or item[5:6] != b"w" or item[5 + pgoutput.PAYLOAD] not in pgoutput.ROWS
    ]


def test_a_message_longer_than_a_block_is_complete_and_frees_its_large_buffer() -> None:
    sent = [log_data(ord("I"), b"x" * (3 * BLOCK)), *(log_data(ord("I"), b"y" * 40) for _ in range(50))]
    stream = b"".join(sent)
    assert received(stream, list(range(0, len(stream), 100_000)))[0] == sent
    inbox = Inbox()
    inbox.put(stream)
    assert len(inbox.take().edges) == 52
    assert len(inbox.room()) == BLOCK


def test_a_long_message_is_scanned_once_for_any_number_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    leap = wire._leap

    def counted(view: memoryview, end: int) -> tuple[list[int], list[int]]:
        looked.append(end)
        return leap(view, end)

    monkeypatch.setattr(wire, "_leap", counted)
    sent = [log_data(ord("I"), b"y" * 40), log_data(ord("I"), b"dxw" * (3 * BLOCK)), log_data(ord("I"), b"z")]
    stream = b"".join(sent)
    assert received(stream, list(range(0, len(stream), 20_000)))[0] == sent
    assert sum(looked) < 2 * len(stream)


def test_invalid_messages_end_the_connection() -> None:
    inbox = Inbox()
    inbox.put(b"d\0\0\0\0" * 4)
    with pytest.raises(ConnectionLostError, match="length 0"):
        inbox.take()


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (b"E", b"SFATAL\0C57P01\0Mterminating connection\0\0", "terminating connection"),
        (b"E", b"CXX999\0\0", "gave no reason"),
        (b"c", b"", "ended the log"),
        (b"N", b"SNOTICE\0\0", None),
    ],
)
def test_a_message_that_is_not_copy_data_may_end_the_log(kind: bytes, body: bytes, text: str | None) -> None:
    inbox = Inbox()
    inbox.put(message(kind[0], body))
    error = ended(inbox.take(), 0)
    assert error is None if text is None else text in str(error)
