"""Text in the character sets of the log is decoded as the server decodes it."""

from __future__ import annotations

import pytest
from mariadb_servers import execute

from ggshell.connectors.mysql.binlog.charsets import charset_of
from ggshell.errors import CaptureError

BIG5 = 1


def test_all_characters_of_big5_are_decoded_as_the_server_does(mariadb: str) -> None:
    pairs = [
        bytes([first, second]) for first in range(0xA1, 0xFA) for second in (*range(0x40, 0x7F), *range(0xA1, 0xFF))
    ]
    execute(mariadb, "CREATE TABLE b (t varbinary(2), INDEX (t))")
    execute(mariadb, f"INSERT INTO b VALUES {', '.join(f'(X{chr(39)}{pair.hex()}{chr(39)})' for pair in pairs)}")
    known = execute(
        mariadb,
        "SELECT t, CONVERT(CONVERT(t USING big5) USING utf8mb4) FROM b WHERE CONVERT(t USING big5) IS NOT NULL"
        " AND CONVERT(CONVERT(t USING big5) USING utf8mb4) NOT IN ('?', '\ufffd')",
    )
    assert len(known) > 13_000
    charset = charset_of(BIG5)
    different = [(pair.hex(), text, charset.decode(pair)) for pair, text in known if charset.decode(pair) != text]
    assert different == []


def test_bytes_that_are_not_valid_are_refused() -> None:
    with pytest.raises(CaptureError, match="the bytes f9"):
        charset_of(BIG5).decode(b"\xf9\xff")
