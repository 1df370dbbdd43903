"""The settings of a session in the events of statements: read up to the first code that is not known, whatever the bytes."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.mysql.binlog.query_variables import NO_FOREIGN_KEY_CHECKS, QueryVariables, query_variables

_FLAGS = b"\x00" + struct.pack("<I", NO_FOREIGN_KEY_CHECKS)
_MODE = b"\x01" + struct.pack("<Q", 1 << 20)
_OFFSET = b"\x03" + struct.pack("<HH", 1, 26471)
_CHARSET = b"\x04" + struct.pack("<HHH", 45, 45, 8)
_TEXTS = b"\x06\x03std" + b"\x05\x03UTC" + b"\x0b\x01u\x04host" + b"\x0c\x02a\x00bc\x00"
_MICROSECONDS = b"\x80\x01\x02\x03"
_FOUND = QueryVariables(NO_FOREIGN_KEY_CHECKS, 1 << 20, 26471, 45, "UTC", 0x30201)


def test_known_settings_are_read_between_others() -> None:
    assert query_variables(_FLAGS + _TEXTS + _MODE + _MICROSECONDS + _OFFSET + _CHARSET) == _FOUND
    plain = _FOUND._replace(time_zone="", microseconds=0)
    assert query_variables(b"\x0c\xfe" + _FLAGS + _MODE + _OFFSET + _CHARSET) == plain
    assert query_variables(b"\x00\x00\x00\x00\x01").explicit_defaults
    assert query_variables(b"\x10\x01").explicit_defaults


def test_an_unknown_code_ends_the_reading() -> None:
    assert query_variables(_MODE + b"\xf0" + _FLAGS) == QueryVariables(sql_mode=1 << 20)


@given(st.binary(max_size=60))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert isinstance(query_variables(data), QueryVariables)
    for cut in range(len(_FLAGS + _TEXTS)):
        assert query_variables((_FLAGS + _TEXTS)[:cut]).sql_mode == 0
