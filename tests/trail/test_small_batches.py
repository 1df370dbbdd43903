"""Small batches decode to the same rows as the vectorized decoder gives, and anything unusual is left to that decoder."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch, read_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trail_kit import A, B, open_writer

from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.small_batches import SMALL_BATCH_BYTES, read_small_batch
from ggshell.types import TrailPosition

KINDS = [IoType.INSERT, IoType.DELETE, IoType.FIELD_COMP, IoType.KEY_FIELD_COMP]
rows = st.builds(
    Row, st.sampled_from([A, B]), st.sampled_from(KINDS), st.binary(min_size=1, max_size=40), st.integers(0, 2**64 - 1)
)
transactions = st.lists(st.lists(rows, min_size=1, max_size=3), min_size=1, max_size=3)


def read_from(name: TrailName, place: TrailPosition) -> list[ChangeBatch]:
    reader = TrailReader(name, place)
    found = []
    while (batch := reader.read()) is not None:
        found.append(batch)
    reader.close()
    return found


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_rows=transactions)
def test_small_batches_decode_to_the_same_rows(
    given_rows: list[list[Row]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = TrailName(tmp_path_factory.mktemp("small"), "ea")
    writer = open_writer(name)
    writer.write(make_batch([Tx(1, [Row(A, IoType.INSERT, b"a"), Row(B, IoType.INSERT, b"b")])]))
    place = writer.flush()
    writer.write(make_batch([Tx(number, part) for number, part in enumerate(given_rows, 2)]))
    writer.flush()
    writer.close()
    monkeypatch.setattr("ggshell.trail.reader.SMALL_BATCH_BYTES", 0)
    vectorized = read_from(name, place)
    monkeypatch.setattr("ggshell.trail.reader.SMALL_BATCH_BYTES", 1 << 20)
    small = read_from(name, place)
    assert len(vectorized) == len(small) == 1
    assert read_rows(small[0]) == read_rows(vectorized[0])
    assert (small[0].seqno, small[0].end_rba) == (vectorized[0].seqno, vectorized[0].end_rba)
    for column in ("io_type", "position", "length", "rba"):
        left, right = getattr(small[0], column), getattr(vectorized[0], column)
        assert left.dtype == right.dtype
        assert left.tolist() == right.tolist()


@pytest.fixture
def chunk(tmp_path: Path) -> tuple[bytes, int]:
    """The bytes of two small transactions, and their RBA."""
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(make_batch([Tx(1, [Row(A, IoType.INSERT, b"a")])]))
    place = writer.flush()
    writer.write(make_batch([Tx(2, [Row(A, IoType.INSERT, b"one"), Row(A, IoType.DELETE, b"k")])]))
    writer.write(make_batch([Tx(3, [Row(A, IoType.INSERT, b"two")])]))
    writer.flush()
    writer.close()
    return name.file(0).read_bytes()[place.rba :], place.rba


DEFINITIONS = {1: A}


def test_whole_transactions_are_read_and_none_stays_open(chunk: tuple[bytes, int]) -> None:
    data, base = chunk
    assert len(data) <= SMALL_BATCH_BYTES
    found = read_small_batch(data, base, 0, DEFINITIONS, None)
    assert found is not None
    assert [(piece.header.csn.value, piece.count) for piece in found[0].pieces] == [(2, 2), (3, 1)]
    assert found[1] is None


def test_any_flipped_bit_or_cut_is_left_to_the_vectorized_decoder(chunk: tuple[bytes, int]) -> None:
    data, base = chunk
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert read_small_batch(bytes(changed), base, 0, DEFINITIONS, None) is None, f"bit {bit}"
    ends = {0, struct.unpack_from("<H", data, 2)[0]}
    ends.add(max(ends) + struct.unpack_from("<H", data, max(ends) + 2)[0])
    ends.add(len(data))
    for length in range(len(data)):
        if length not in ends:
            assert read_small_batch(data[:length], base, 0, DEFINITIONS, None) is None, f"length {length}"


def test_a_wrong_rba_an_unknown_table_or_an_open_transaction_is_left_to_the_vectorized_decoder(
    chunk: tuple[bytes, int],
) -> None:
    data, base = chunk
    found = read_small_batch(data, base, 0, DEFINITIONS, None)
    assert found is not None
    open_header = found[0].pieces[0].header
    assert read_small_batch(data, base + 1, 0, DEFINITIONS, None) is None
    assert read_small_batch(data, base, 0, {}, None) is None
    assert read_small_batch(data, base, 0, DEFINITIONS, open_header) is None
    first = struct.unpack_from("<H", data, 2)[0]
    assert read_small_batch(data[first:], base + first, 0, DEFINITIONS, None) is None
    inside = read_small_batch(data[first:], base + first, 0, DEFINITIONS, open_header)
    assert inside is not None
    assert [(piece.begins, piece.ends) for piece in inside[0].pieces] == [(False, True), (True, True)]
