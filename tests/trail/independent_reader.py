"""A trail reader written from FORMAT.md alone: it uses the standard library and no code of the project.

It is deliberately slow and simple. Anything that the format calls damage raises ValueError.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

JULIAN = 210_866_760_000_000_000
SIGNATURE = b"GS\r\nTL\n\r"
TWO_IMAGES = (115, 134, 135)
METADATA, RESTART, FRAGMENT, DELETE, DDL = 170, 151, 161, 3, 160

Image = list[tuple[int, bytes | None]]


class Transaction(NamedTuple):
    """What a transaction's first record says about it; times in microseconds since 1970."""

    csn: str
    xid: str
    restart: str | None
    time: int


class Change(NamedTuple):
    """One row, with its transaction and the definition of its table."""

    seqno: int
    rba: int
    transaction: Transaction
    begins: bool
    ends: bool
    table: dict[str, Any]
    operation: int
    is_before: bool
    position: int
    before: Image
    after: Image
    user_tokens: dict[str, bytes]
    ddl: dict[str, str]


class Piece(NamedTuple):
    """One record: header fields by name, and its areas."""

    rba: int
    end: int
    field: dict[str, int]
    tail: bytes
    data: bytes
    user: bytes
    tokens: dict[int, bytes]


_FIRST = ("hdr_ind", "partition", "undo", "before_after", "rec_length", "io_type", "orig_node", "io_time", "audit_pos")
_LAST = ("audit_rba", "trans_ind", "format", "syskey", "incomplete", "continued", "rec_count")
NAMES = (*_FIRST, *_LAST)


def need(condition: object, expected: str) -> None:
    """Raise ValueError unless the condition of the format holds."""
    if not condition:
        raise ValueError(f"expected {expected}")


def tokens_of(data: bytes, order: str) -> list[tuple[int, bytes]]:
    """The tokens of a token area."""
    found, place = [], 0
    while place < len(data):
        need(place + 4 <= len(data), "a whole token")
        identity, _, length = struct.unpack_from(f"{order}BBH", data, place)
        place += 4 + length
        need(place <= len(data), "a token within what holds it")
        found.append((identity, data[place - length : place]))
    return found


def file_header(data: bytes) -> tuple[int, dict[tuple[int, int], bytes]]:
    """The length of the header record, and its tokens by group and number."""
    need(len(data) >= 16, "a file header")
    identity, info, size = struct.unpack_from(">BBH", data)
    need((identity, info) == (0x46, 0) and 16 <= size <= len(data), "a file header")
    need(data[size - 4 : size] == struct.pack(">BBH", 0x5A, 0, size), "its closing token")
    need(data[size - 12 : size - 8] == struct.pack(">BBH", 0x43, 0, 4), "its checksum token")
    need(struct.unpack_from(">I", data, size - 8)[0] == zlib.crc32(data[: size - 8]), "its checksum")
    found = {}
    for group, body in tokens_of(data[4 : size - 12], ">"):
        for number, value in tokens_of(body, ">"):
            found[group, number] = value
    need(found.get((0x30, 0x30)) == SIGNATURE, "the signature")
    need(int.from_bytes(found.get((0x30, 0x31), b""), "big") <= 7, "compatibility 7")
    need((0x30, 0x50) not in found, "rows in the clear")
    return size, found


def records(data: bytes, place: int) -> Iterator[Piece]:
    """The records of a file, from the first one after the file header."""
    while place < len(data):
        need(place + 63 <= len(data), "a whole record")
        identity, info, size = struct.unpack_from("<BBH", data, place)
        need((identity, info) == (0x47, 1) and size >= 63 and place + size <= len(data), "a record")
        record = data[place : place + size]
        need(record[-4:] == struct.pack("<BBH", 0x5A, 1, size), "the trailer")
        areas = tokens_of(record[4:-4], "<")
        need(areas[0][0] == 0x48 and areas[-1][0] == 0x54, "header first, GGS tokens last")
        header, ggs = areas[0][1], tokens_of(areas[-1][1], "<")
        need(ggs and ggs[-1][0] == 0x43 and len(ggs[-1][1]) == 8, "the checksum token, last")
        written_for, checksum = struct.unpack("<II", ggs[-1][1])
        need(checksum == zlib.crc32(record[:-8]), "the checksum")
        need(written_for == place & 0xFFFFFFFF, "a record of this place")
        field = dict(zip(NAMES, struct.unpack_from("<BBBBHBBQQIBBBBBB", header), strict=True))
        area = dict(areas[1:-1])
        content = area.get(0x44, b"")
        need(field["rec_length"] == len(content), "RecLength")
        yield Piece(place, place + size, field, header[34:], content, area.get(0x55, b""), dict(ggs[:-1]))
        place += size


def image(data: bytes) -> Image:
    """Columns and their values."""
    found: Image = []
    place = 0
    while place < len(data):
        column, length, indicator = struct.unpack_from("<HHH", data, place)
        if indicator == 0xFFFF:
            need(length == 2, "a NULL of 2 bytes")
            found.append((column, None))
            place += 6
            continue
        need(indicator == 0, "a NULL indicator")
        if length == 0xFFFF:
            size, first = struct.unpack_from("<I", data, place + 6)[0], place + 10
        else:
            size, first = struct.unpack_from("<H", data, place + 6)[0], place + 8
            need(length == size + 4, "a length of the value and 4")
        place = first + size
        need(place <= len(data), "a value within the image")
        found.append((column, data[first:place]))
    return found


def images(operation: int, data: bytes) -> tuple[Image, Image]:
    """The columns before and the image after."""
    if operation == DDL:
        return [], []
    if operation not in TWO_IMAGES:
        return [], image(data)
    size, first = struct.unpack_from("<H", data)[0], 2
    if size == 0xFFFF:
        size, first = struct.unpack_from("<I", data, 2)[0], 6
    need(first + size <= len(data), "a before part within the data area")
    return image(data[first : first + size]), image(data[first + size :])


def ddl_of(data: bytes) -> dict[str, str]:
    """The pairs of a DDL statement by key."""
    found, text, place = {}, data.decode(), 0
    while place < len(text):
        need(text[place] == ",", "a comma before a pair")
        equals = text.index("=", place)
        key, place = text[place + 1 : equals], equals + 2
        need(key.isalpha() and key.isupper() and text[equals + 1] == "'", "a key and a quote")
        value = ""
        while True:
            quote = text.index("'", place)
            value, place = value + text[place:quote], quote + 1
            if text[place : place + 1] != "'":
                break
            value, place = value + "'", place + 1
        need(text[place : place + 1] == ",", "a comma after a pair")
        found[key], place = value, place + 1
    return found


def user_tokens_of(user: bytes) -> dict[str, bytes]:
    """The user tokens by name."""
    found, place = {}, 0
    while place < len(user):
        value = place + 1 + user[place] + 2
        size = struct.unpack_from("<H", user, value - 2)[0]
        need(value + size <= len(user), "a user token within the area")
        found[user[place + 1 : value - 2].decode()] = user[value : value + size]
        place = value + size
    return found


def transaction_of(tokens: dict[int, bytes], time: int) -> Transaction:
    """A transaction from the GGS tokens of its first record and its IO Time."""
    need(0x4C in tokens and 0x36 in tokens, "LOGCSN and TRANID")
    restart = tokens[0x42].decode() if 0x42 in tokens else None
    return Transaction(tokens[0x4C].decode(), tokens[0x36].decode(), restart, time - JULIAN)


def joined(pieces: Iterator[Piece]) -> Iterator[tuple[Piece, bytes, int, int]]:
    """Records with their whole data area, the TransInd of the last fragment, and where it ends."""
    for first in pieces:
        need(first.field["io_type"] != FRAGMENT, "the first record of a fragment")
        last, content, number = first, first.data, 1
        while last.field["continued"]:
            number += 1
            following = next(pieces, None)
            need(following is not None, "the next fragment")
            assert following is not None
            last = following
            need((last.field["io_type"], last.field["rec_count"]) == (FRAGMENT, number & 0xFF), f"fragment {number}")
            content += last.data
        yield first, content, last.field["trans_ind"], last.end


class IndependentReader:
    """Reads all files of a trail in order."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.files = sorted(folder.glob(f"{prefix}" + "[0-9]" * 9))
        self.headers: list[dict[tuple[int, int], bytes]] = []
        self.restarts = 0
        self._open: Transaction | None = None

    def changes(self) -> Iterator[Change]:
        """Every row. Raises ValueError on damage."""
        size_before = None
        for path in self.files:
            data = path.read_bytes()
            first, header = file_header(data)
            self.headers.append(header)
            seqno = int(path.name[2:])
            need(int.from_bytes(header[0x30, 0x38], "big") == seqno, "the sequence number of the name")
            if (0x34, 0x33) in header:
                need(int.from_bytes(header[0x34, 0x33], "big") == size_before, "the size of the file before")
            inside = header.get((0x34, 0x32))
            if inside is None:
                need(self._open is None, "a transaction that continues")
            else:
                same = transaction_of(dict(tokens_of(inside[8:], "<")), int.from_bytes(inside[:8], "big"))
                need(same == self._open, "the transaction that is open")
            yield from self._file(seqno, data, first)
            size_before = len(data)
        need(self._open is None, "the end of the last transaction")

    def _file(self, seqno: int, data: bytes, first: int) -> Iterator[Change]:
        tables: dict[int, dict[str, Any]] = {}
        for piece, content, last_place, _ in joined(records(data, first)):
            field = piece.field
            if field["io_type"] == METADATA:
                index = field["audit_rba"] >> 16
                need(index and index not in tables and field["orig_node"] == index & 0xFF, "a new table index")
                tables[index] = json.loads(content)
                name = f"{tables[index]['owner']}.{tables[index]['table']}"
                need(piece.tail == name.encode() + b"\0", "the table's name")
            elif field["io_type"] == RESTART:
                need(content == b"" and piece.tail == b"\0", "an empty restart record")
                self.restarts += 1
            else:
                yield self._row(seqno, piece, content, last_place, tables)

    def _row(
        self, seqno: int, piece: Piece, content: bytes, last_place: int, tables: dict[int, dict[str, Any]]
    ) -> Change:
        field = piece.field
        need(field["partition"] & 8 and len(piece.tail) == 2, "a table index")
        index = int.from_bytes(piece.tail, "little")
        need(index in tables, "a table that is defined")
        begins, ends = field["trans_ind"] in (0, 3), last_place in (2, 3)
        need(begins == (self._open is None), "transactions one after the other")
        transaction = transaction_of(piece.tokens, field["io_time"]) if begins else self._open
        assert transaction is not None
        need(transaction.time == field["io_time"] - JULIAN, "the commit time in every row")
        self._open = None if ends else transaction
        operation = field["io_type"]
        before, after = images(operation, content)
        is_before = chr(field["before_after"]) == "B" and operation != DELETE
        return Change(
            seqno, piece.rba, transaction, begins, ends, tables[index], operation, is_before, field["audit_pos"],
            before, after, user_tokens_of(piece.user), ddl_of(content) if operation == DDL else {},
        )  # fmt: skip


def durable_end(folder: Path, prefix: str) -> dict[str, int]:
    """The content of the durable mark beside the trail."""
    data = (folder / f".{prefix}.durable").read_bytes()
    need(len(data) == 27 and struct.unpack_from("<I", data, 23)[0] == zlib.crc32(data[:23]), "a mark of 27 bytes")
    return dict(zip(("seqno", "rba", "csn", "kind", "tables"), struct.unpack_from("<IQQBH", data), strict=True))
