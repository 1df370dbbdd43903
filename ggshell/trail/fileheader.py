"""The file header: the record at RBA 0 of every trail file, in groups of tokens as listings show it (lengths big-endian)."""

from __future__ import annotations

import platform
import struct
from typing import NamedTuple

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.types import Csn

SIGNATURE = b"GS\r\nTL\n\r"
"""Our own, so that nobody takes these files for the vendor's (whose signature begins ``GG``)."""
COMPATIBILITY = 6
RESTARTABLE = 1

_TOKEN = struct.Struct(">BBH")


class Producer(NamedTuple):
    """Who writes a trail, and from what."""

    group: str
    program: str
    database_vendor: str = "PostgreSQL"
    database_name: str = ""
    database_version: str = ""


class FileHeader(NamedTuple):
    """What a trail file says of itself; unknown tokens are ignored, missing ones keep these defaults."""

    signature: bytes = SIGNATURE
    compatibility: int = COMPATIBILITY
    created: int = 0
    uri: str = ""
    file_name: str = ""
    seqno: int = 0
    first_csn: Csn | None = None
    system: str = ""
    node: str = ""
    database_vendor: str = ""
    database_name: str = ""
    database_version: str = ""
    producer: str = ""
    program: str = ""
    recovery_mode: int = RESTARTABLE


def _text(value: str) -> bytes:
    data = value.encode()[:0xFFF]
    return struct.pack(">H", len(data)) + data


def _group(identity: int, tokens: list[tuple[int, bytes]]) -> bytes:
    body = b"".join(_TOKEN.pack(number, 0, len(value)) + value for number, value in tokens)
    return _TOKEN.pack(identity, 0, len(body)) + body


def encode_header(name: str, seqno: int, created: int, producer: Producer, last_csn: Csn | None) -> bytes:
    """The header record of a new file.  ``last_csn``: the last transaction that the files before it hold."""
    trail = [
        (0x30, SIGNATURE),
        (0x31, struct.pack(">H", COMPATIBILITY)),
        (0x32, struct.pack(">i", -3)),
        (0x33, struct.pack(">Q", created + JULIAN_EPOCH_MICROSECONDS)),
        (0x34, _text(f"uri:{platform.node()}:{name}:{producer.group}")),
        (0x36, _text(name)),
        (0x38, struct.pack(">I", seqno)),
        (0x3A, str(last_csn or "").encode()),
    ]
    machine = [(0x30, _text(platform.system())), (0x31, _text(platform.node())), (0x32, _text(platform.release()))]
    database = [
        (0x30, _text(producer.database_vendor)),
        (0x31, _text(producer.database_name)),
        (0x36, _text(producer.database_version)),
    ]
    origin = [(0x30, _text(producer.group)), (0x37, _text(producer.program))]
    body = b"".join(
        [
            _group(0x30, trail),
            _group(0x31, machine),
            _group(0x32, database),
            _group(0x33, origin),
            _group(0x34, [(0x30, bytes([RESTARTABLE]))]),
        ]
    )
    total = len(body) + 8
    return struct.pack(">BBH", 0x46, 0, total) + body + struct.pack(">BBH", 0x5A, 0, total)


def header_size(data: bytes) -> int:
    """The header record's length from its first 4 bytes, 0 when they do not begin one."""
    if len(data) < 4:
        return 0
    identity, _, length = _TOKEN.unpack_from(data)
    return length if identity == 0x46 else 0


def decode_header(data: bytes) -> FileHeader:
    """Read a header record.  Raises ValueError when it is none, or damaged."""
    size = header_size(data)
    if size < 8 or size > len(data) or data[size - 4 : size] != struct.pack(">BBH", 0x5A, 0, size):
        raise ValueError("no trail file header")
    found: dict[tuple[int, int], bytes] = {}
    for group, body in _tokens(data[4 : size - 4]):
        for number, value in _tokens(body):
            found[group, number] = value
    return _header(found)


def _tokens(data: bytes) -> list[tuple[int, bytes]]:
    result, place = [], 0
    while place + 4 <= len(data):
        identity, _, length = _TOKEN.unpack_from(data, place)
        if place + 4 + length > len(data):
            raise ValueError(f"token {identity:#x} of the file header leads behind its group")
        result.append((identity, data[place + 4 : place + 4 + length]))
        place += 4 + length
    return result


def _header(found: dict[tuple[int, int], bytes]) -> FileHeader:
    def text(group: int, number: int) -> str:
        return found.get((group, number), b"\0\0")[2:].decode(errors="replace")

    def number(place: int, default: int) -> int:
        return int.from_bytes(found[0x30, place], "big") if (0x30, place) in found else default

    csn = found.get((0x30, 0x3A), b"").decode(errors="replace")
    return FileHeader(
        signature=found.get((0x30, 0x30), b""),
        compatibility=number(0x31, 0),
        created=number(0x33, JULIAN_EPOCH_MICROSECONDS) - JULIAN_EPOCH_MICROSECONDS,
        uri=text(0x30, 0x34),
        file_name=text(0x30, 0x36),
        seqno=number(0x38, 0),
        first_csn=Csn.parse(csn) if csn else None,
        system=text(0x31, 0x30),
        node=text(0x31, 0x31),
        database_vendor=text(0x32, 0x30),
        database_name=text(0x32, 0x31),
        database_version=text(0x32, 0x36),
        producer=text(0x33, 0x30),
        program=text(0x33, 0x37),
        recovery_mode=found.get((0x34, 0x30), b"\1")[0],
    )
