"""Binary messages beside the library: the same messages in the same order, wherever the stream is divided."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side

from ggshell.network.masking import masked_frame
from ggshell.service.binary_messages import LONG, BinaryMessages

FRAMES = st.lists(
    st.one_of(
        st.tuples(st.just(Opcode.BINARY), st.sampled_from([0, 1, 125, 126, 65_535, 65_536, LONG - 1, LONG, 90_001])),
        st.tuples(st.just(Opcode.TEXT), st.sampled_from([3, 20_000])),
        st.tuples(st.just(Opcode.PING), st.sampled_from([0, 125])),
    ),
    max_size=8,
)


def receive(stream: bytes, steps: list[int], longest: int = 1 << 20) -> tuple[list[bytes], int]:
    """The data of all frames in order, and how many of them were taken."""
    library = Protocol(Side.SERVER, max_size=longest)
    messages = BinaryMessages(lambda length: length <= longest and library.current_size is None)
    found: list[bytes] = []
    count = number = place = 0
    while place < len(stream):
        room = messages.room()
        part = stream[place : place + min(len(room), steps[number % len(steps)])]
        room[: len(part)] = part
        place, number = place + len(part), number + 1
        for is_message, data in messages.arrived(len(part)):
            if is_message:
                found.append(data)
                count += 1
                continue
            library.receive_data(data)
            found += [bytes(each.data) for each in library.events_received() if isinstance(each, Frame)]
    return found, count


@settings(max_examples=60)
@given(
    frames=FRAMES,
    steps=st.lists(st.integers(1, 70_000), min_size=1, max_size=5),
    seed=st.binary(min_size=7, max_size=7),
)
def test_the_stream_gives_the_same_messages_however_it_is_divided(
    frames: list[tuple[Opcode, int]], steps: list[int], seed: bytes
) -> None:
    wanted = [(seed * (size // 7 + 1))[:size] for _, size in frames]
    stream = b"".join(
        Frame(opcode, data).serialize(mask=True) for (opcode, _), data in zip(frames, wanted, strict=True)
    )
    large = max(steps) if len(stream) > 5_000 else 1
    found, taken = receive(stream, [max(each, large // 50, 1) for each in steps])
    assert found == wanted
    assert taken == sum(opcode is Opcode.BINARY for opcode, _ in frames)


def test_every_place_of_a_division_in_the_heads() -> None:
    parts = [b"a" * LONG, b"b", b"c" * LONG]
    stream = b"".join(Frame(Opcode.BINARY, each).serialize(mask=True) for each in parts)
    for first in (*range(1, 12), *range(LONG + 4, LONG + 30)):
        assert receive(stream, [first, 1, 1, 1, 1 << 20])[0] == parts


def test_a_message_of_an_encrypted_line_has_no_mask() -> None:
    message = bytes(range(256)) * (LONG // 256)
    stream = b"".join(masked_frame(message[:17], message[17:], private=True))
    assert message in stream
    assert receive(stream, [1 << 20]) == ([message], 1)


def test_the_parts_of_a_message_and_a_message_that_is_too_long_are_the_librarys() -> None:
    parts = [Frame(Opcode.BINARY, b"a" * LONG, fin=False), Frame(Opcode.CONT, b"b" * LONG)]
    assert receive(b"".join(each.serialize(mask=True) for each in parts), [1 << 20])[1] == 0
    data = Frame(Opcode.BINARY, b"a" * (LONG + 1)).serialize(mask=True)
    assert receive(data, [1 << 20], longest=LONG) == ([], 0)
