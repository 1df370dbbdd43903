"""Frames and acknowledgements: what is encoded is decoded, and whatever is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame as Message
from websockets.frames import Opcode
from websockets.streams import StreamReader

from ggshell.errors import TrailError
from ggshell.network.frames import (
    LONGEST_DATA,
    Acknowledgement,
    Compression,
    Frame,
    FrameKind,
    decode_acknowledgement,
    decode_frame,
    encode_acknowledgement,
    encode_frame,
)
from ggshell.network.masking import masked_frame
from ggshell.trail.durable import DurableMark
from ggshell.types import Csn, TrailPosition

positions = st.builds(TrailPosition, st.integers(0, 999_999_999), st.integers(0, 2**63))
marks = st.builds(
    DurableMark, positions, st.none() | st.builds(Csn, st.integers(0, 2**63), st.booleans()), st.integers(0, 65535)
)
frames = st.builds(
    Frame,
    st.sampled_from(FrameKind),
    positions,
    st.binary(max_size=2000) | st.binary(max_size=20).map(lambda b: b * 100),
    st.none() | marks,
)
compressions = st.sampled_from([None, Compression(0), Compression(1000)])


@given(frames, compressions)
def test_a_frame_is_decoded_as_it_was_encoded(frame: Frame, compression: Compression | None) -> None:
    assert decode_frame(encode_frame(frame, compression)) == frame


@given(frames, compressions, st.data())
def test_a_frame_with_any_changed_bit_is_refused(
    frame: Frame, compression: Compression | None, data: st.DataObject
) -> None:
    message = bytearray(encode_frame(frame, compression))
    place = data.draw(st.integers(0, len(message) * 8 - 1))
    message[place // 8] ^= 1 << place % 8
    with pytest.raises(TrailError) as error:
        decode_frame(bytes(message))
    assert error.value.code == "GGS-00955"


@given(frames, st.data())
def test_a_truncated_frame_is_refused(frame: Frame, data: st.DataObject) -> None:
    message = encode_frame(frame)
    with pytest.raises(TrailError):
        decode_frame(message[: data.draw(st.integers(0, len(message) - 1))])


def test_a_frame_that_announces_more_than_is_allowed_is_refused_before_it_is_decompressed() -> None:
    bomb = encode_frame(Frame(FrameKind.APPEND, TrailPosition(0, 0), bytes(LONGEST_DATA + 1)), Compression(0))
    with pytest.raises(TrailError, match="are allowed"):
        decode_frame(bomb)


@given(st.builds(Acknowledgement, positions, st.integers(0, 2**63)))
def test_an_acknowledgement_is_decoded_as_it_was_encoded(found: Acknowledgement) -> None:
    assert decode_acknowledgement(encode_acknowledgement(found)) == found


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(("size", "parts"), [(0, 1), (60, 1), (200, 1), (16 << 10, 2), (1 << 16, 2)])
def test_a_short_message_leaves_in_one_part_and_every_message_arrives_whole(
    size: int, parts: int, private: bool
) -> None:
    head, data = b"a head of 17 byte", bytes(range(256)) * (size // 256 + 1)
    sent = masked_frame(head, data[:size], private=private)
    assert len(sent) == parts
    stream = StreamReader()
    for part in sent:
        stream.feed_data(part)
    parsing = Message.parse(stream.read_exact, mask=True, max_size=None)
    with pytest.raises(StopIteration) as ended:
        next(parsing)
    assert ended.value.value.opcode is Opcode.BINARY
    assert ended.value.value.data == head + data[:size]
