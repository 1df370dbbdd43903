"""The tokens of any producer's file header, by group and name, as Logdump's FILEHEADER shows them.

``fileheader`` reads what ggshell itself needs. This module returns every token; at damage it returns the tokens before it.
"""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import Final, NamedTuple

_TOKEN = struct.Struct(">BBH")
_FILE_HEADER: Final = 0x46
_TRAILER: Final = 0x5A
GROUPS: Final = MappingProxyType(
    {
        0x30: (
            "TrailInfo",
            "Signature Compatibility Charset CreationTime URI URIHistory Filename MultiPart Seqno FileSize FirstCSN LastCSN"
            " FirstIOTime LastIOTime LogBSN",
        ),
        0x31: ("MachineInfo", "Sysname Nodename Release Version Hardware"),
        0x32: (
            "DatabaseInfo",
            "Vendor Name Instance Charset MajorVersion MinorVersion VerString ClientCharset ClientVerString ClientNCharset"
            " DbLocale DbNCharset DbObjNameMetadata DbTimeZone",
        ),
        0x33: (
            "ProducerInfo",
            "Name DataSource MajorVersion MinorVersion MaintLevel BugFixLevel BuildNumber VerString",
        ),
        0x34: ("ContinuityInfo", "RecoveryMode PreviousCSN Transaction PreviousSize"),
    }
)


class HeaderToken(NamedTuple):
    """One token of a group: its id, its name (empty if unknown), its info byte and its value."""

    identity: int
    name: str
    info: int
    value: bytes


class HeaderGroup(NamedTuple):
    """One group of tokens; ``length`` is the length in the group's own token."""

    identity: int
    name: str
    info: int
    length: int
    tokens: tuple[HeaderToken, ...]


def is_incomplete(begin: bytes, size: int) -> bool:
    """Whether a file of this size, with these first 4 bytes, ends inside its header record and may still be completed."""
    if size < _TOKEN.size or len(begin) < _TOKEN.size:
        return bytes((_FILE_HEADER, 0)).startswith(begin[:2])
    identity, _, length = _TOKEN.unpack_from(begin)
    return bool(identity == _FILE_HEADER and length > size)


def header_length(data: bytes) -> int:
    """Return the length of the header record at the start of a file; 0 if there is none."""
    if len(data) < 4 or data[0] != _FILE_HEADER:
        return 0
    length = int(_TOKEN.unpack_from(data)[2])
    if length < 8 or length > len(data) or data[length - 4] != _TRAILER or data[length - 2 : length] != data[2:4]:
        return 0
    return length


def header_groups(data: bytes) -> tuple[HeaderGroup, ...]:
    """Return the groups of a header record; other top-level tokens are left out."""
    size = header_length(data)
    found = []
    for identity, info, value in _split(data[4 : size - 4]):
        if identity in GROUPS:
            name, names = GROUPS[identity]
            known = names.split()
            tokens = tuple(
                HeaderToken(number, known[number - 0x30] if 0 <= number - 0x30 < len(known) else "", how, content)
                for number, how, content in _split(value)
            )
            found.append(HeaderGroup(identity, name, info, len(value), tokens))
    return tuple(found)


def _split(data: bytes) -> list[tuple[int, int, bytes]]:
    found, place = [], 0
    while place + 4 <= len(data):
        identity, info, length = _TOKEN.unpack_from(data, place)
        place += 4 + length
        if place > len(data):
            break
        found.append((identity, info, data[place - length : place]))
    return found
