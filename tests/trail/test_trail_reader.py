"""A reader at every position where it can start, and everything it must refuse."""

from __future__ import annotations

import contextlib
import os
import random
import select
import struct
import threading
import zlib
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch, read_rows
from trail_kit import (
    FIRST_TIME,
    PRODUCER,
    A,
    B,
    cut_records,
    mark_file,
    open_writer,
    read_all,
    seal,
    small,
    write_trail,
)

from ggshell.errors import TrailError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import fileheader, layout
from ggshell.trail.fileheader import COMPATIBILITY, Continuity, Form, decode_header, encode_header
from ggshell.trail.name import TrailName
from ggshell.trail.positions import read_position_time
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TableName, TrailPosition


def without_mark(name: TrailName, content: bytes) -> None:
    """Set the content of the first file, all of it visible."""
    name.file(0).write_bytes(content)
    mark_file(name).unlink(missing_ok=True)


def test_a_reader_may_start_at_any_record_also_within_a_transaction_across_files(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, 700)
    expected = []
    parts = [small(1), small(2, ends=False), *[small(2, begins=False, ends=False) for _ in range(9)]]
    for part in [*parts, small(2, begins=False), small(3)]:
        writer.write(part)
        expected += read_rows(part)
    end = writer.flush()
    writer.close()
    assert len(name.sequences()) >= 3
    assert read_all(name) == expected
    left = len(expected)
    for seqno in name.sequences():
        for rba, record in cut_records(name.file(seqno).read_bytes()):
            rows = read_all(name, TrailPosition(seqno, rba))
            assert rows == expected[len(expected) - left :]
            left -= record[9] == layout.PARTITION_ROW
    assert left == 0
    assert read_all(name, end) == []


def test_a_large_transaction_is_read_in_pieces_that_share_one_header(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1, rows=400, size=50)])
    pieces = []
    with contextlib.closing(TrailReader(name)) as reader:
        while (batch := reader.read(4000)) is not None:
            pieces += batch.pieces
    assert len(pieces) > 5
    assert {piece.header for piece in pieces} == {pieces[0].header}
    assert [piece.begins for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [piece.ends for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_a_position_that_is_not_the_begin_of_a_record_is_refused(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    places = write_trail(name, [small(1), small(2)])
    for place in (places[1].rba - 1, places[1].rba + 1, places[0].rba + 5):
        with pytest.raises(TrailError, match="RBA"):
            read_all(name, TrailPosition(0, place))


def test_moved_doubled_or_missing_records_are_refused(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(csn) for csn in range(1, 5)])
    content = name.file(0).read_bytes()
    head = content[: cut_records(content)[0][0]]
    records = [data for _, data in cut_records(content)]
    good = [row for csn in range(1, 5) for row in read_rows(small(csn))]
    rng = random.Random(3)
    for _ in range(60):
        changed = list(records)
        match rng.randrange(3):
            case 0:
                changed.insert(rng.randrange(len(changed)), rng.choice(records))
            case 1:
                del changed[rng.randrange(len(changed) - 1)]
            case _:
                rng.shuffle(changed)
        if changed == records:
            continue
        name.file(0).write_bytes(head + b"".join(changed))
        rows: list[tuple[object, ...]] = []
        with contextlib.closing(TrailReader(name)) as reader, contextlib.suppress(TrailError):
            while (batch := reader.read()) is not None:
                rows += read_rows(batch)
        assert rows == good[: len(rows)]


def test_rows_before_the_damage_are_delivered_first(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    places = write_trail(name, [small(1), small(2), small(3)])
    content = bytearray(name.file(0).read_bytes())
    content[places[2].rba + 50] ^= 8
    name.file(0).write_bytes(content)
    reader = TrailReader(name)
    batch = reader.read()
    assert batch is not None
    assert read_rows(batch) == read_rows(small(1)) + read_rows(small(2))
    for _ in range(3):
        with pytest.raises(TrailError, match=f"RBA {places[2].rba}: expected bytes that match their checksum"):
            reader.read()
    reader.close()


def test_tokens_of_unknown_kinds_are_skipped(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1, rows=1)])
    content = name.file(0).read_bytes()
    rba, record = cut_records(content)[-1]
    area = 48 + 9
    for place in (44, area):  # Before D, and between D and T.
        for more in (b"W\0\5\0hello", b"q\1\0\0"):
            longer = seal(record[:place] + more + record[place:], rba)
            without_mark(name, content[:rba] + longer)
            assert read_all(name) == read_rows(small(1, rows=1))


def test_interleaved_transactions_are_refused_by_writer_and_reader(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    with pytest.raises(TrailError, match="continues, but never began"):
        writer.write(small(1, begins=False))
    writer.write(small(1, ends=False))
    with pytest.raises(TrailError, match="begins while another one is open"):
        writer.write(small(2))
    writer.write(small(1, begins=False))
    writer.flush()
    writer.close()
    content = name.file(0).read_bytes()
    rows = [(rba, data) for rba, data in cut_records(content) if data[9] == layout.PARTITION_ROW]
    for number, trans_ind, text in [
        (3, TransInd.MIDDLE, None),
        (3, TransInd.SOLE, "the end of the transaction before the next one"),
        (1, TransInd.BEGIN, "the end of the transaction before the next one"),
        (0, TransInd.MIDDLE, "a transaction's first record"),
    ]:
        rba, data = rows[number]
        changed = seal(data[:36] + bytes([trans_ind]) + data[37:], rba)
        name.file(0).write_bytes(content[:rba] + changed + content[rba + len(data) :])
        if text is None:
            assert not any(row[6] for row in read_all(name))
            continue
        with pytest.raises(TrailError, match=f"RBA {rba}: expected {text}"):
            read_all(name)


def test_a_changed_definition_gets_a_new_index_between_rows(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    wider = TableDefinition(A.name, (*A.columns, Column("more", "text", 25, True, 7)), (0,))
    long = TableDefinition(TableName("x", "y"), tuple(Column(f"c{at}" * 9, "t" * 60) for at in range(900)), ())
    batches = [
        make_batch([Tx(csn, [Row(table, IoType.INSERT, b"x")])]) for csn, table in enumerate([A, wider, A, long, B])
    ]
    ends = write_trail(name, batches)
    expected = [row for batch in batches for row in read_rows(batch)]
    assert read_all(name) == expected
    assert read_all(name, size=100) == expected
    assert read_all(name, ends[-2]) == expected[-1:]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"signature": b"GG\r\nTL\n\r"}, "was not written by ggshell"),
        ({"compatibility": 8}, "format 8; this program reads formats up to 7"),
        ({"seqno": 3}, "sequence number 3, not 0"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, change: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1)])
    content = name.file(0).read_bytes()
    with monkeypatch.context() as patch:
        if "signature" in change:
            patch.setattr(fileheader, "SIGNATURE", change["signature"])
        form = Form(int(str(change.get("compatibility", COMPATIBILITY))))
        head = encode_header("x", int(str(change.get("seqno", 0))), 1, PRODUCER, Continuity(), form)
    without_mark(name, head + content[cut_records(content)[0][0] :])
    with pytest.raises(TrailError, match=text):
        read_all(name)


def test_the_file_header_has_the_position_of_the_file_in_the_trail(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(7))
    writer.rollover()
    writer.write(small(8))
    writer.flush()
    writer.close()
    first, second = (decode_header(name.file(seqno).read_bytes()) for seqno in (0, 1))
    assert (first.seqno, first.previous_csn, first.first_csn) == (0, None, None)
    assert (second.seqno, second.previous_csn, second.first_csn) == (1, Csn(7), Csn(8))
    assert (first.previous_size, second.previous_size) == (None, name.file(0).stat().st_size)
    assert second.first_time == FIRST_TIME + 8000
    assert (second.producer, second.program, second.database_name) == ("EXT1", "Extract", "north")
    assert second.created == FIRST_TIME
    assert second.inside is None


def test_unknown_tokens_of_a_file_header_are_ignored_and_missing_ones_have_defaults() -> None:
    data = encode_header("x", 5, 1, PRODUCER, Continuity())
    assert decode_header(data + b"behind").file_name == "x"
    body = struct.pack(">BBH", 0x30, 0, 12) + struct.pack(">BBH", 0x30, 0, 8) + fileheader.SIGNATURE
    body += struct.pack(">BBH", 0x77, 0, 3) + b"abc"
    total = 4 + len(body) + 12
    content = struct.pack(">BBH", 0x46, 0, total) + body + struct.pack(">BBH", 0x43, 0, 4)
    bare = content + struct.pack(">I", zlib.crc32(content)) + struct.pack(">BBH", 0x5A, 0, total)
    header = decode_header(bare)
    assert (header.signature, header.seqno, header.producer, header.recovery_mode) == (
        fileheader.SIGNATURE,
        None,
        "",
        1,
    )


def test_a_reader_follows_a_running_writer_across_files_and_is_woken(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, 5000)
    batches = [small(csn, rows=1 + csn % 5, size=csn % 90) for csn in range(1, 200)]

    def write() -> None:
        for number, batch in enumerate(batches):
            writer.write(batch)
            if number % 3 == 0:
                writer.flush()
        writer.flush()

    expected = [row for batch in batches for row in read_rows(batch)]
    rows: list[tuple[object, ...]] = []
    reader = TrailReader(name)
    reader.fileno()
    thread = threading.Thread(target=write)
    thread.start()
    while len(rows) < len(expected):
        reader.drain()
        batch = reader.read()
        if batch is None:
            assert select.select([reader], [], [], 20)[0]
        else:
            rows += read_rows(batch)
    thread.join()
    assert rows == expected
    assert reader.at_end()
    assert len(name.sequences()) > 3
    reader.close()
    writer.close()


def test_listeners_that_come_and_go_leave_no_files(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    first, second = TrailReader(name), TrailReader(name)
    first.fileno()
    second.fileno()
    folder = tmp_path / ".ea.wake"
    assert len(list(folder.iterdir())) == 2
    first.close()
    writer.write(small(1))
    writer.flush()
    assert select.select([second], [], [], 5)[0]
    second.close()
    assert not list(folder.iterdir())
    writer.write(small(2))
    writer.flush()
    writer.close()


def test_a_purged_file_is_named_and_a_trail_without_files_is_waited_for(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    assert TrailReader(name).read() is None
    assert TrailReader(name).end() is None
    assert read_position_time(name, TrailPosition(0, 0)) is None
    writer = open_writer(name, 400)
    for csn in range(1, 9):
        writer.write(small(csn))
    writer.flush()
    writer.close()
    for seqno in (0, 1):
        name.file(seqno).unlink()
    with pytest.raises(TrailError, match="sequence number 1") as raised:
        read_all(name, TrailPosition(1, 600))
    assert raised.value.code == "OGG-01332"
    with pytest.raises(TrailError, match="sequence number 1"):
        read_position_time(name, TrailPosition(1, 600))
    assert read_all(name)


@pytest.mark.parametrize("read_before", [0, 1, 2], ids=["nothing read", "within the file", "at its end"])
@pytest.mark.parametrize("max_bytes", [1 << 30, 1], ids=["in one file", "over files"])
@pytest.mark.parametrize("cut", [False, True], ids=["deleted", "cut off"])
def test_a_reader_continues_in_a_copy_that_is_restored_over_its_file(
    tmp_path: Path, read_before: int, max_bytes: int, cut: bool
) -> None:
    """The reader's own file is deleted or truncated. Finding: it reported the good copy as damaged, and restoring once more
    lost
    later transactions."""
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1), small(2)])
    path = name.file(0)
    good = path.read_bytes()
    with contextlib.closing(TrailReader(name)) as reader:
        found = [row for _ in range(read_before) if (batch := reader.read(1)) is not None for row in read_rows(batch)]
        if cut:
            os.truncate(path, len(good) // 2)
        path.unlink()
        path.write_bytes(good)
        write_trail(name, [small(3)], max_bytes)
        while (batch := reader.read()) is not None:
            found += read_rows(batch)
    assert found == [row for csn in (1, 2, 3) for row in read_rows(small(csn))]


def test_a_file_with_a_six_digit_sequence_number_is_read(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1)])
    name.file(0).rename(tmp_path / "ea000000")
    assert name.sequences() == [0]
    assert read_all(name) == read_rows(small(1))


def test_the_time_of_a_position_is_that_of_the_next_row_also_within_a_transaction(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(1), small(2, rows=5)], 300)
    times = []
    for seqno in name.sequences():
        for rba, _ in cut_records(name.file(seqno).read_bytes()):
            times.append(read_position_time(name, TrailPosition(seqno, rba)))
    assert times == sorted(times, key=lambda time: time or 0)
    assert set(times) == {FIRST_TIME + 1000, FIRST_TIME + 2000}
