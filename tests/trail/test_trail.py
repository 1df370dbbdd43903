"""What is written to a trail is read back unchanged, whatever rolls over, ends or is cut in between."""

from __future__ import annotations

import random
import select
import tempfile
from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch, read_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import A, B, hand_made_rows, open_writer, read_all

from ggshell.errors import ConflictError, TrailError
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.positions import read_position_time
from ggshell.trail.reader import TrailReader
from ggshell.trail.recover import find_end
from ggshell.types import Csn

plans = st.lists(
    st.tuples(st.lists(hand_made_rows(), min_size=1, max_size=5), st.sampled_from(["", "", "flush", "roll", "reopen"])),
    max_size=20,
)


@settings(max_examples=examples(60))
@given(plans, st.integers(200, 4000), st.integers(100, 3000))
def test_random_transactions_with_rollovers_and_restarts_are_read_back_unchanged(
    plan: list[tuple[list[Row], str]], max_bytes: int, chunk: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        name = TrailName(Path(folder), "ea")
        writer, expected = open_writer(name, max_bytes), []
        for csn, (changes, event) in enumerate(plan, 1):
            batch = make_batch([Tx(csn, changes)])
            writer.write(batch)
            expected += read_rows(batch)
            if event:
                writer.flush()
            if event == "roll":
                writer.rollover()
            if event == "reopen":
                writer.close()
                writer = open_writer(name, max_bytes)
                assert writer.last_csn == Csn(csn)
        writer.flush()
        writer.close()
        assert read_all(name, size=chunk) == expected


@pytest.mark.parametrize("size", [0, 40_000, 44_001, 59_999, 60_000, 130_000])
@pytest.mark.parametrize("user", [1, 16_000])
def test_user_tokens_are_read_back_with_rows_of_any_length(tmp_path: Path, size: int, user: int) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    long = Row(A, IoType.INSERT, random.Random(1).randbytes(size), user=random.Random(2).randbytes(user))
    batch = make_batch(
        [Tx(1, [Row(A, IoType.INSERT, b"s", user=b"u"), long, Row(B, IoType.DELETE, b"e")]), Tx(2, [long])]
    )
    writer.write(batch)
    writer.flush()
    writer.close()
    for chunk in (1000, 1 << 20):
        assert read_all(name, size=chunk) == read_rows(batch)


def test_a_transaction_written_in_pieces_is_read_only_when_complete(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    reader = TrailReader(name)
    row = Row(A, IoType.INSERT, b"x" * 30)
    writer.write(make_batch([Tx(1, [row]), Tx(2, [row, row], ends=False)]))
    writer.flush()
    batch = reader.read()
    assert batch is not None
    assert [piece.header.csn.value for piece in batch.pieces] == [1]
    assert reader.read() is None
    writer.write(make_batch([Tx(2, [row], begins=False)]))
    writer.flush()
    batch = reader.read()
    assert batch is not None
    assert [(piece.header.csn.value, piece.count, piece.begins, piece.ends) for piece in batch.pieces] == [
        (2, 3, True, True)
    ]
    assert reader.at_end()
    writer.close()


@pytest.mark.parametrize("size", [59_999, 60_000, 60_001, 250_000])
def test_a_long_data_area_is_split_into_fragments_and_read_back_whole(tmp_path: Path, size: int) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    data = random.Random(1).randbytes(size)
    batch = make_batch([Tx(1, [Row(A, IoType.INSERT, b"s"), Row(A, IoType.INSERT, data), Row(B, IoType.DELETE, b"e")])])
    writer.write(batch)
    only = make_batch([Tx(2, [Row(A, IoType.INSERT, data)])])
    writer.write(only)
    writer.flush()
    writer.close()
    for chunk in (1000, 1 << 20):
        assert read_all(name, size=chunk) == read_rows(batch) + read_rows(only)
    assert open_writer(name).last_csn == Csn(2)


@pytest.mark.slow
def test_after_a_cut_at_any_length_every_whole_transaction_is_kept_and_the_writer_resumes(tmp_path: Path) -> None:
    name = TrailName(tmp_path / "t", "ea")
    writer = open_writer(name)
    ends = [writer.position.rba]
    batches = [
        make_batch([Tx(csn, [Row(A, IoType.INSERT, b"v" * csn), Row(B, IoType.DELETE, b"w")])]) for csn in (1, 2, 3)
    ]
    for batch in batches:
        writer.write(batch)
        ends.append(writer.flush().rba)
    writer.close()
    content = name.file(0).read_bytes()
    mark = name.folder / ".ea.durable"
    for cut in range(len(content) + 1):
        mark.unlink(missing_ok=True)
        name.file(0).write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends[1:])
        found = find_end(name)
        assert found is not None
        assert found.csn == (Csn(whole) if whole else None)
        if cut % 7 and cut not in ends:  # Syncs are slow: not at every length.
            continue
        again = open_writer(name)
        assert again.last_csn == found.csn
        again.write(batches[0])
        again.flush()
        again.close()
        expected = [row for batch in [*batches[:whole], batches[0]] for row in read_rows(batch)]
        assert read_all(name) == expected


@pytest.mark.slow
def test_a_flipped_bit_is_an_error_with_file_and_rba_and_never_a_wrong_row(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    batch = make_batch(
        [Tx(1, [Row(A, IoType.INSERT, b"hello"), Row(B, IoType.DELETE, b"w" * 9)]), Tx(2, [Row(A, 15, b"z")])]
    )
    writer.write(batch)
    writer.flush()
    writer.close()
    path = name.file(0)
    content = path.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        with pytest.raises(TrailError) as raised:
            read_all(name)
        assert "RBA" in str(raised.value)


def test_the_error_for_a_missing_middle_file_names_its_sequence_number(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    for csn in (1, 2, 3):
        writer.write(make_batch([Tx(csn, [Row(A, IoType.INSERT, b"x")])]))
        writer.flush()
        writer.rollover()
    writer.close()
    name.file(1).unlink()
    with pytest.raises(TrailError, match="sequence number 1"):
        read_all(name)


def test_a_second_writer_of_a_trail_is_refused(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    with pytest.raises(ConflictError):
        open_writer(name)
    writer.close()
    open_writer(name).close()


def test_reading_resumes_after_any_transaction(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, 600)
    places, expected = [], []
    for csn in range(1, 9):
        places.append(writer.position)
        batch = make_batch([Tx(csn, [Row(A if csn % 2 else B, IoType.INSERT, b"x" * csn)])])
        writer.write(batch)
        writer.flush()
        expected.append(read_rows(batch))
    writer.close()
    for number, place in enumerate(places):
        assert read_all(name, place) == [row for of_one in expected[number:] for row in of_one]
        assert read_position_time(name, place) == 1_700_000_000_000_000 + (number + 1) * 1000
    assert read_position_time(name, writer.position) is None


def test_a_waiting_reader_is_woken_by_a_flush(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    reader = TrailReader(name)
    reader.fileno()
    assert reader.read() is None
    assert select.select([reader], [], [], 0)[0] == []
    writer.write(make_batch([Tx(1, [Row(A, IoType.INSERT, b"x")])]))
    writer.flush()
    assert select.select([reader], [], [], 5)[0] == [reader]
    reader.drain()
    assert reader.read() is not None
    reader.close()
    writer.close()
