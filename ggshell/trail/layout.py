"""The layout of trail bytes: tokens, the record header (GHDR), and the constants of FORMAT.md."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

RECORD: Final = 0x47  # G
HEADER: Final = 0x48  # H
DATA: Final = 0x44  # D
TOKENS: Final = 0x54  # T
USER_TOKENS: Final = 0x55  # U
TRAILER: Final = 0x5A  # Z
LOGCSN: Final = 0x4C  # L
TRANID: Final = 0x36  # 6
LOGBSN: Final = 0x42  # B, ggshell's own
CHECKSUM: Final = 0x43  # C, ggshell's own

TOKEN = struct.Struct("<BBH")
GHDR = struct.Struct("<BBBBHBBQQIBBBBBB")
"""The 34 fixed bytes of a record header; a 2-byte table index or a NUL-terminated name follows."""

HDR_IND: Final = 0x45  # E
PARTITION_ROW: Final = 0x0C
PARTITION_METADATA: Final = 0x00
INDEXED: Final = 0x08
"""The partition bit that marks rows (x0c, x4c): a table index follows the fixed bytes; without the bit, a name."""
AFTER: Final = 0x41
BEFORE: Final = 0x42
FORMAT_TYPE: Final = 0x52  # R
ORIG_NODE: Final = 0xFF
CONTINUED: Final = 1

HEAD_SIZE: Final = 48  # G token 4, H token 4, GHDR 36, D token 4
BARE_HEAD_SIZE: Final = 44  # the same without D
SEAL: Final = 8
"""The size of the checksum's value: the record's place (low 32 bits of its RBA), then the CRC-32 of all bytes before it."""
CLOSING_SIZE: Final = 4 + SEAL + 4  # checksum token, Z token
TAIL_SIZE: Final = 4 + CLOSING_SIZE  # T token, then the closing
UNSEALED: Final = 8
"""The number of bytes at the end of a record that its CRC does not cover: the CRC itself and the Z token."""
LONGEST_DATA: Final = 60_000
"""Data areas longer than this, in bytes, are split into fragments, because the lengths in a record have 16 bits."""

GHDR_DTYPE = np.dtype(
    [
        ("hdr_ind", "u1"),
        ("partition", "u1"),
        ("undo_flag", "u1"),
        ("before_after", "u1"),
        ("rec_length", "<u2"),
        ("io_type", "u1"),
        ("orig_node", "u1"),
        ("io_time", "<u8"),
        ("audit_pos", "<u8"),
        ("audit_rba", "<u4"),
        ("trans_ind", "u1"),
        ("format_type", "u1"),
        ("syskey_len", "u1"),
        ("incomplete", "u1"),
        ("continued", "u1"),
        ("rec_count", "u1"),
        ("table", "<u2"),
    ]
)
HEAD_DTYPE = np.dtype(
    [
        *[("record", "u1"), ("record_info", "u1"), ("record_length", "<u2")],
        *[("header", "u1"), ("header_info", "u1"), ("header_length", "<u2"), ("ghdr", GHDR_DTYPE)],
        *[("data", "u1"), ("data_info", "u1"), ("data_length", "<u2")],
    ]
)
ROW_HEAD: Final = struct.Struct("<BBHBBHBBBBHBBQQIBBBBBBHBBH")
"""The same head for a single row: G, H, the header's fields, D."""
CLOSING: Final = struct.Struct("<BBHIIBBH")
_CLOSING = [
    *[("checksum", "u1"), ("checksum_info", "u1"), ("checksum_length", "<u2"), ("place", "<u4"), ("value", "<u4")],
    *[("trailer", "u1"), ("trailer_info", "u1"), ("total", "<u2")],
]
CLOSING_DTYPE = np.dtype(_CLOSING)
TAIL_DTYPE = np.dtype([("tokens", "u1"), ("tokens_info", "u1"), ("tokens_length", "<u2"), *_CLOSING])


PLACE_MASK: Final = 0xFFFFFFFF


def token(identity: int, value: bytes, info: int = 0) -> bytes:
    """Encode one token: id, info, length, value."""
    return TOKEN.pack(identity, info, len(value)) + value
