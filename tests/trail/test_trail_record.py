"""Decoding one record: the records of public listings, the example of FORMAT.md, and every kind of damage."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from batches import Row, Tx, make_batch
from trail_kit import A, B, cut_records, open_writer

import ggshell.trail
from ggshell.errors import TrailError
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.trail.encode import encode_batch
from ggshell.trail.name import TrailName
from ggshell.trail.record import decode_record

HEADER = "450c 0041 1d00 0fff 352b deff 5315 f302 e850 0005 0000 0000 0000 0000 0352 0000 0001 0000"
DATA = "0000 0a00 0000 0000 0000 0000 0001 0100 0b00 0000 0700 7465 7374 696e 67"
DELETE_HEADER = "450c 0042 0e00 03ff cb9b d60f 5415 f302 406a 0005 0000 0000 0000 0000 0352 0000 0001 0000"
DELETE_DATA = "0000 0a00 0000 0000 0000 0000 0002"


def frame(header: str, data: str, tokens: bytes = b"", order: str = "<") -> bytes:
    """A record framed as in the listings: without a checksum."""
    head, area = bytes.fromhex(header), bytes.fromhex(data)
    body = b"H\0" + struct.pack(f"{order}H", len(head)) + head
    body += b"D\0" + struct.pack(f"{order}H", len(area)) + area if area else b""
    body += b"T\0" + struct.pack(f"{order}H", len(tokens)) + tokens if tokens else b""
    total = struct.pack(f"{order}H", len(body) + 8)
    return b"G\1" + total + body + b"Z\1" + total


def test_the_update_of_a_listing_has_the_printed_values() -> None:
    tokens = b"L\0\x11\x0000000000/050056B86\0\3\x00715"
    record = decode_record(frame(HEADER, DATA, tokens))
    assert (record.hdr_ind, record.partition, record.undo_flag, record.before_after) == ("E", 0x0C, 0, "A")
    assert (record.rec_length, record.io_type, record.orig_node) == (29, 15, 255)
    assert record.io_time == datetime(2022, 12, 6, 3, 38, 55, 764277, tzinfo=UTC)
    assert (record.audit_pos, record.audit_rba, record.trans_ind) == (83906792, 0, 3)
    assert (record.format_type, record.syskey_len, record.incomplete, record.continued) == ("R", 0, 0, 0)
    assert (record.rec_count, record.table_index, record.name) == (1, 0, "")
    assert record.columns() == [(0, b"\0\0\0\0\0\0\0\1"), (1, b"\7\0testing")]
    assert record.tokens == {"L": b"00000000/050056B8", "6": b"715"}
    assert record.checksum is None


def test_the_delete_of_a_listing_and_its_total() -> None:
    tokens = b"L\0\x11\x0000000000/050056B86\0\3\x00715"
    data = frame(DELETE_HEADER, DELETE_DATA, tokens)
    record = decode_record(data)
    assert len(data) == 98
    assert (record.before_after, record.io_type, record.rec_length) == ("B", IoType.DELETE, 14)
    assert record.columns() == [(0, b"\0\0\0\0\0\0\0\2")]


def test_a_key_update_has_the_columns_before_and_after() -> None:
    data = "0a00 0000 0600 0000 0000 000a 0000 0600 0000 0000 0009"
    record = decode_record(frame("450c 0041 1600 73ff" + HEADER[19:], data))
    assert record.before_columns() == [(0, b"\0\0\0\x0a")]
    assert record.columns() == [(0, b"\0\0\0\x09")]


def test_a_truncate_has_no_data() -> None:
    record = decode_record(frame("450c 0041 0000 64ff" + HEADER[19:], "", b"6\0\3\x00715"))
    assert (record.io_type, record.data, record.columns()) == (IoType.PURGE_DATA, b"", [])


def test_a_restart_record_has_an_empty_name() -> None:
    header = bytes.fromhex(HEADER)
    header = header[:1] + b"\4" + header[2:4] + b"\0\0\x97\0" + header[8:33] + b"\0\0"
    record = decode_record(frame(header.hex(), ""))
    assert (record.io_type, record.orig_node, record.rec_count, record.name) == (IoType.RESTART_OK, 0, 0, "")
    assert record.table_index is None


def test_an_older_big_endian_data_area_is_recognized() -> None:
    data = "0000 000a 0000 0000 0000 0000 0001 0001 000b 0000 0007 7465 7374 696e 67"
    for order in "<>":
        record = decode_record(frame(HEADER, data, struct.pack(f"{order}BBH", 0x36, 0, 1) + b"7", order))
        assert record.columns() == [(0, b"\0\0\0\0\0\0\0\1"), (1, b"\0\7testing")]
        assert record.tokens == {"6": b"7"}


def test_null_and_very_long_values_are_decoded_as_columns() -> None:
    image = encode_image([(3, None), (0, b"x" * 100), (1, b"")])
    assert columns_of(image) == [(3, None), (0, struct.pack("<H", 100) + b"x" * 100), (1, b"\0\0")]
    image = encode_image([(0, b"x" * 65_531), (1, b"y")])
    assert columns_of(image) == [(0, struct.pack("<I", 65_531) + b"x" * 65_531), (1, b"\1\0y")]


def columns_of(image: bytes) -> list[tuple[int, bytes | None]]:
    """The columns of a data area that may exceed one record, as joined fragments are."""
    record = decode_record(frame("450c 0041 0000 05ff" + HEADER[19:], ""))
    return replace(record, data=image).columns()


def ours(tmp_path: Path) -> list[tuple[int, bytes]]:
    """Records of every kind that the writer makes."""
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    image = encode_image([(0, b"1"), (1, None)])
    rows = [
        Row(A, IoType.INSERT, image, 7),
        Row(A, IoType.FIELD_COMP, encode_image([(0, b"1"), (1, b"two")]), 8),
        Row(B, IoType.DELETE, encode_image([(0, b"-5")]), 9),
        Row(A, IoType.KEY_FIELD_COMP, join_key_update(encode_image([(0, b"1")]), image), 2**63),
        Row(A, IoType.PURGE_DATA, b"", 11),
    ]
    writer.write(make_batch([Tx(1, rows), Tx(2, rows[:1])]))
    writer.flush()
    writer.close()
    open_writer(name).close()
    return cut_records(name.file(0).read_bytes())


def test_every_record_of_the_writer_decodes_with_its_rba(tmp_path: Path) -> None:
    records = [decode_record(data, rba=rba) for rba, data in ours(tmp_path)]
    kinds = [record.io_type for record in records]
    assert kinds == [170, 170, 5, 15, 3, 115, 100, 5, 151]
    assert [record.trans_ind for record in records[2:8]] == [0, 1, 1, 1, 2, 3]
    assert records[0].name == "hr.a"
    assert records[1].name == "hr.b Ü"
    assert records[1].audit_rba == 2 << 16
    assert [record.table_index for record in records[2:8]] == [1, 1, 2, 1, 1, 1]
    assert records[2].columns() == [(0, b"\1\x001"), (1, None)]
    assert records[5].before_columns() == [(0, b"\1\x001")]
    assert records[2].tokens == {"L": b"00000000/00000001", "6": b"701", "B": b"00000000/00000001"}
    assert records[3].tokens == {}
    assert records[2].io_time == datetime(2023, 11, 14, 22, 13, 20, 1000, tzinfo=UTC)


def test_every_truncation_and_every_flipped_bit_of_a_record_is_detected(tmp_path: Path) -> None:
    for rba, data in ours(tmp_path):
        for length in range(len(data)):
            with pytest.raises(TrailError):
                decode_record(data[:length])
        for place in range(len(data)):
            for bit in range(8):
                flipped = bytearray(data)
                flipped[place] ^= 1 << bit
                with pytest.raises(TrailError):
                    decode_record(bytes(flipped), rba=rba)


def test_random_splices_are_detected(tmp_path: Path) -> None:
    records, rng = [data for _, data in ours(tmp_path)], random.Random(5)
    for _ in range(3000):
        first, second = rng.choice(records), rng.choice(records)
        data = first[: rng.randrange(len(first))] + second[rng.randrange(len(second)) :]
        if data in records:
            continue
        with pytest.raises(TrailError):
            decode_record(data)


def test_a_record_at_another_rba_is_refused_if_the_rba_is_known(tmp_path: Path) -> None:
    rba, data = ours(tmp_path)[3]
    assert decode_record(data).place == rba
    with pytest.raises(TrailError, match="written for this position"):
        decode_record(data, rba=rba + 1)


def test_the_writer_makes_the_example_of_the_format_page() -> None:
    page = (Path(ggshell.trail.__file__).parent / "FORMAT.md").read_text(encoding="utf-8")
    block = page.split("## Worked example")[1].split("## The end")[0]
    lines = [line.strip().split("  ")[0] for line in block.splitlines() if line.startswith("    ")]
    example = bytes.fromhex("".join(lines))
    row = Row(A, IoType.INSERT, encode_image([(0, b"1"), (1, None)]), 7)
    batch = make_batch([Tx(42, [row])])
    assert bytes(encode_batch(batch, np.array([1], dtype=np.uint16), 700)) == example
    assert decode_record(example, rba=700).tokens["6"] == b"742"
