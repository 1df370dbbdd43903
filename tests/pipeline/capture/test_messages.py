"""Messages keep their order and bytes when they are joined, filtered and spilled to disk."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.messages import Messages

lists = st.lists(st.lists(st.binary(max_size=12), max_size=6), min_size=1, max_size=6)


@given(lists)
def test_joined_parts_contain_their_messages_in_order(parts: list[list[bytes]]) -> None:
    joined = Messages.join([Messages.pack(part) for part in parts])
    expected = [message for part in parts for message in part]
    assert list(joined) == expected
    assert len(joined) == len(expected)
    assert [joined[number] for number in range(len(joined))] == expected


def test_marked_messages_are_removed() -> None:
    messages = Messages.pack([b"-aaaa1", b"-bbbb2", b"-aaaa3", b"-cccc4"])
    assert list(messages.without({b"aaaa", b"cccc"}, 1)) == [b"-bbbb2"]


def test_spilled_parts_are_read_before_those_in_memory_in_bounded_runs(tmp_path: Path) -> None:
    cache = TransactionCache(400, tmp_path)
    transaction = cache.begin(7, 1, 1)
    sent = [b"%05d" % number for number in range(100)]
    for first in range(0, 100, 10):
        cache.add(
            transaction,
            transaction.chunk("definitions", streamed=True, id_offset=0),
            Messages.pack(sent[first : first + 10]),
        )
    assert cache.spills
    runs = [parts for _, parts in transaction.runs(30)]
    assert [message for parts in runs for part in parts for message in part] == sent
    assert max(sum(map(len, parts)) for parts in runs) <= 30
    assert transaction.count == 100
    transaction.aborted.add(b"0001")
    assert [message for _, parts in transaction.runs(1000) for part in parts for message in part] == sent[:10] + sent[
        20:
    ]
    transaction.close()
