"""User tokens (TABLE … TOKENS): names and values that are stored with a row.

They are encoded as a sequence of: length of the name (1 byte), name, length of the value (2 bytes, little-endian), value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_NAME: Final = 0xFF
LONGEST_VALUE: Final = 2000
LONGEST_TOKENS: Final = 16_000
"""The maximum size of all tokens of a record in bytes, according to the manual."""


def encode_user_tokens(tokens: Iterable[tuple[str, bytes]]) -> bytes:
    """Encode tokens. Raises ValueError with the token's name if a name, a value or all tokens together are too long."""
    parts: list[bytes] = []
    size = 0
    for name, value in tokens:
        raw = name.encode()
        if not 0 < len(raw) <= LONGEST_NAME:
            raise ValueError(f"the name of token {name} has {len(raw)} bytes; 1 to {LONGEST_NAME} are allowed")
        if len(value) > LONGEST_VALUE:
            raise ValueError(f"token {name} has {len(value)} bytes; up to {LONGEST_VALUE} are allowed")
        part = bytes([len(raw)]) + raw + len(value).to_bytes(2, "little") + value
        parts.append(part)
        size += len(part)
        if size > LONGEST_TOKENS:
            raise ValueError(
                f"with token {name}, the record's tokens have {size} bytes; up to {LONGEST_TOKENS} are allowed"
            )
    return b"".join(parts)


def decode_user_tokens(data: bytes | memoryview) -> dict[str, bytes]:
    """Decode tokens by name, in order. Raises ValueError if a token extends past the end or a name is not valid UTF-8."""
    found: dict[str, bytes] = {}
    place, end = 0, len(data)
    while place < end:
        value = place + 1 + data[place] + 2
        if value > end:
            raise ValueError(f"a token's name at byte {place} points past the end of the user tokens")
        size = data[value - 2] | data[value - 1] << 8
        if value + size > end:
            raise ValueError(f"a token's value of {size} bytes at byte {value} points past the end of the user tokens")
        found[bytes(data[place + 1 : value - 2]).decode()] = bytes(data[value : value + size])
        place = value + size
    return found
