"""The file header: the record at RBA 0 of every trail file, in groups of tokens as public listings show it (big-endian)."""

from __future__ import annotations

import platform
import struct
from typing import Final, NamedTuple

from ggshell.checksum import crc32
from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import layout
from ggshell.trail.sealing import Seal
from ggshell.trail.tokens import transaction_header, transaction_tokens
from ggshell.types import Csn

SIGNATURE: Final = b"GS\r\nTL\n\r"
"""ggshell's own signature, so that these files are not mistaken for the vendor's, whose signature begins with ``GG``."""
COMPATIBILITY: Final = 7
"""The newest trail format that this release reads and writes: 3 is the format of 12.1, 6 of 12.3, 7 of 21.1."""
RESTARTABLE: Final = 1
UTF8: Final = -3
LONGEST: Final = 0xFFFF
"""The largest size of a header record in bytes; reading this much of a file always returns the whole header."""

_FILE_HEADER = 0x46
_TRAIL, _MACHINE, _DATABASE, _PRODUCER, _CONTINUITY = 0x30, 0x31, 0x32, 0x33, 0x34
_TOKEN = struct.Struct(">BBH")
_SEAL, _WALLET = 0x50, 0x51
_SEAL_SIZE = 8
_SMALLEST = 4 + _SEAL_SIZE + 4


class Producer(NamedTuple):
    """The group and program that write a trail, and the database that they read."""

    group: str
    program: str
    database_vendor: str = ""
    database_name: str = ""
    database_version: str = ""


class Continuity(NamedTuple):
    """How a file continues the previous one.

    ``previous_csn``: the last transaction that ended in the earlier files; ``previous_size``: the final size of the
    previous file; ``first``: the transaction of the file's first row, if known when the file is created; ``inside``:
    whether that transaction began in an earlier file.
    """

    previous_csn: Csn | None = None
    previous_size: int | None = None
    first: TransactionHeader | None = None
    inside: bool = False


class Form(NamedTuple):
    """The form of a file: its format, its encryption, and the URIs of the trails that its rows came through."""

    compatibility: int = COMPATIBILITY
    seal: Seal | None = None
    uris: tuple[str, ...] = ()


NEWEST_FORM = Form()


class FileHeader(NamedTuple):
    """The header of a trail file; unknown tokens are ignored, and missing ones keep these defaults."""

    signature: bytes = SIGNATURE
    compatibility: int = COMPATIBILITY
    character_set: int = UTF8
    created: int = 0
    uri: str = ""
    file_name: str = ""
    seqno: int | None = None
    first_csn: Csn | None = None
    first_time: int | None = None
    log_bsn: Csn | None = None
    """The position from which the source's log must be read to rebuild the file's first transaction and all later ones."""
    system: str = ""
    node: str = ""
    release: str = ""
    database_vendor: str = ""
    database_name: str = ""
    database_version: str = ""
    producer: str = ""
    program: str = ""
    recovery_mode: int = RESTARTABLE
    previous_csn: Csn | None = None
    previous_size: int | None = None
    inside: TransactionHeader | None = None
    """The transaction that continues from the previous file; None if the file begins between transactions."""
    seal: Seal | None = None
    uris: tuple[str, ...] = ()


def encode_header(
    name: str, seqno: int, created: int, producer: Producer, continuity: Continuity, form: Form = NEWEST_FORM
) -> bytes:
    """Encode the header record of a new file; ``created`` is in microseconds since 1970."""
    body = b"".join(
        [
            _group(_TRAIL, _trail_tokens(name, seqno, created, producer, continuity, form)),
            _group(_MACHINE, list(enumerate(map(_text, _machine()), 0x30))),
            _group(
                _DATABASE,
                [
                    (0x30, _text(producer.database_vendor)),
                    (0x31, _text(producer.database_name)),
                    (0x36, _text(producer.database_version)),
                ],
            ),
            _group(_PRODUCER, [(0x30, _text(producer.group)), (0x37, _text(producer.program))]),
            _group(_CONTINUITY, _continuity_tokens(continuity)),
        ]
    )
    total = 4 + len(body) + _SEAL_SIZE + 4
    content = _TOKEN.pack(_FILE_HEADER, 0, total) + body + _TOKEN.pack(layout.CHECKSUM, 0, 4)
    return content + struct.pack(">I", crc32(content)) + _TOKEN.pack(layout.TRAILER, 0, total)


def adapted_header(data: bytes, seqno: int, previous_size: int | None) -> bytes:
    """Return the header record for a copy of its file that has another number or follows a file of another size.

    Only these two tokens and the checksum change, so the length stays the same. ``previous_size``: None does not change it.
    """
    size = header_size(data)
    changed = bytearray(data[:size])
    for (group, number), (place, length) in _places(data[: size - 12]).items():
        if (group, number, length) == (_TRAIL, 0x38, 4):
            changed[place : place + 4] = struct.pack(">I", seqno)
        elif (group, number, length) == (_CONTINUITY, 0x33, 8) and previous_size is not None:
            changed[place : place + 8] = struct.pack(">Q", previous_size)
    changed[size - 8 : size - 4] = struct.pack(">I", crc32(changed[: size - 8]))
    return bytes(changed)


def _places(content: bytes) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the place and length of each token's value, by group and number."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    place = 4
    while place + 4 <= len(content):
        group, _, length = _TOKEN.unpack_from(content, place)
        place, end = place + 4, place + 4 + length
        while place + 4 <= end:
            number, _, inner = _TOKEN.unpack_from(content, place)
            found[group, number] = (place + 4, inner)
            place += 4 + inner
        place = end
    return found


def file_uri(name: str, group: str) -> str:
    """Return the URI of a trail file that a group of this machine writes."""
    return f"uri:{platform.node()}:{name}:{group}"


def _machine() -> tuple[str, ...]:
    """The system, name, release, version and architecture of this machine.

    They are read one by one: a slice of ``uname()`` includes the processor, for which Python starts a process.
    """
    names = platform.uname()
    return names.system, names.node, names.release, names.version, names.machine


def _trail_tokens(
    name: str, seqno: int, created: int, producer: Producer, continuity: Continuity, form: Form
) -> list[tuple[int, bytes]]:
    tokens = [
        (0x30, SIGNATURE),
        (0x31, struct.pack(">H", form.compatibility)),
        (0x32, struct.pack(">i", UTF8)),
        (0x33, _time(created)),
        (0x34, _text(file_uri(name, producer.group))),
        (0x35, b"".join(map(_text, form.uris))),
        (0x36, _text(name)),
        (0x38, struct.pack(">I", seqno)),
    ]
    if form.seal is not None:
        tokens.append((_SEAL, form.seal.encode()))
        if form.seal.protection.wallet:
            tokens.append((_WALLET, bytes.fromhex(form.seal.protection.wallet)))
    if continuity.first is not None:
        first = continuity.first
        tokens += [(0x3A, str(first.csn).encode()), (0x3C, _time(first.commit_time))]
        if first.restart:
            tokens.append((0x3E, str(first.csn._replace(value=first.restart)).encode()))
    return tokens


def _continuity_tokens(continuity: Continuity) -> list[tuple[int, bytes]]:
    tokens = [(0x30, bytes([RESTARTABLE]))]
    if continuity.previous_csn is not None:
        tokens.append((0x31, str(continuity.previous_csn).encode()))
    if continuity.previous_size is not None:
        tokens.append((0x33, struct.pack(">Q", continuity.previous_size)))
    if continuity.first is not None and continuity.inside:
        tokens.append((0x32, _time(continuity.first.commit_time) + transaction_tokens(continuity.first)))
    return tokens


def _time(microseconds: int) -> bytes:
    return struct.pack(">Q", microseconds + JULIAN_EPOCH_MICROSECONDS)


def _text(value: str) -> bytes:
    data = value.encode()[:0xFFF]
    return struct.pack(">H", len(data)) + data


def _texts(value: bytes) -> tuple[str, ...]:
    found, place = [], 0
    while place + 2 <= len(value):
        end = place + 2 + int.from_bytes(value[place : place + 2], "big")
        found.append(value[place + 2 : end].decode(errors="replace"))
        place = end
    return tuple(found)


def _group(identity: int, tokens: list[tuple[int, bytes]]) -> bytes:
    body = b"".join(_TOKEN.pack(number, 0, len(value)) + value for number, value in tokens)
    return _TOKEN.pack(identity, 0, len(body)) + body


def header_size(data: bytes) -> int:
    """Return the header record's length from its first 4 bytes; 0 if they do not begin a header record."""
    if len(data) < 4:
        return 0
    identity, _, length = _TOKEN.unpack_from(data)
    return int(length) if identity == _FILE_HEADER else 0


def decode_header(data: bytes) -> FileHeader:
    """Decode a header record from a file's first bytes. Raises ValueError if it is not a header record or is damaged."""
    size = header_size(data)
    if size < _SMALLEST or size > len(data) or data[size - 4 : size] != _TOKEN.pack(layout.TRAILER, 0, size):
        raise ValueError("a file header record with its trailer")
    seal = data[size - 12 : size - 4]
    if seal != _TOKEN.pack(layout.CHECKSUM, 0, 4) + struct.pack(">I", crc32(data[: size - 8])):
        raise ValueError("a file header that matches its checksum")
    found: dict[tuple[int, int], bytes] = {}
    for group, body in _tokens(data[4 : size - 12]):
        for number, value in _tokens(body):
            found[group, number] = value
    return _header(found)


def _tokens(data: bytes) -> list[tuple[int, bytes]]:
    result, place = [], 0
    while place + 4 <= len(data):
        identity, _, length = _TOKEN.unpack_from(data, place)
        if place + 4 + length > len(data):
            raise ValueError(f"token {identity:#x} inside its group")
        result.append((identity, data[place + 4 : place + 4 + length]))
        place += 4 + length
    return result


def _header(found: dict[tuple[int, int], bytes]) -> FileHeader:
    def text(group: int, number: int) -> str:
        return found.get((group, number), b"\0\0")[2:].decode(errors="replace")

    def number(token: int, group: int = _TRAIL) -> int | None:
        value = found.get((group, token))
        return None if value is None else int.from_bytes(value, "big")

    def csn(group: int, token: int) -> Csn | None:
        value = found.get((group, token))
        return Csn.parse(value.decode()) if value else None

    first_time = number(0x3C)
    character_set = found.get((_TRAIL, 0x32))
    return FileHeader(
        signature=found.get((_TRAIL, 0x30), b""),
        compatibility=number(0x31) or 0,
        character_set=UTF8 if character_set is None else int.from_bytes(character_set, "big", signed=True),
        created=(number(0x33) or JULIAN_EPOCH_MICROSECONDS) - JULIAN_EPOCH_MICROSECONDS,
        uri=text(_TRAIL, 0x34),
        file_name=text(_TRAIL, 0x36),
        seqno=number(0x38),
        first_csn=csn(_TRAIL, 0x3A),
        log_bsn=csn(_TRAIL, 0x3E),
        first_time=None if first_time is None else first_time - JULIAN_EPOCH_MICROSECONDS,
        system=text(_MACHINE, 0x30),
        node=text(_MACHINE, 0x31),
        release=text(_MACHINE, 0x32),
        database_vendor=text(_DATABASE, 0x30),
        database_name=text(_DATABASE, 0x31),
        database_version=text(_DATABASE, 0x36),
        producer=text(_PRODUCER, 0x30),
        program=text(_PRODUCER, 0x37),
        recovery_mode=found.get((_CONTINUITY, 0x30), b"\1")[0],
        previous_csn=csn(_CONTINUITY, 0x31),
        previous_size=number(0x33, _CONTINUITY),
        inside=_inside(found.get((_CONTINUITY, 0x32))),
        seal=_seal(found),
        uris=_texts(found.get((_TRAIL, 0x35), b"")),
    )


def _seal(found: dict[tuple[int, int], bytes]) -> Seal | None:
    value = found.get((_TRAIL, _SEAL))
    if not value:
        return None
    seal = Seal.decode(value)
    return seal._replace(protection=seal.protection._replace(wallet=found.get((_TRAIL, _WALLET), b"").hex()))


def _inside(value: bytes | None) -> TransactionHeader | None:
    if value is None:
        return None
    return transaction_header(value, 8, len(value), int.from_bytes(value[:8], "big"))
