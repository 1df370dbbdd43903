"""Literals for MariaDB: those of a whole column are those of its values one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.mysql.literals import literals_of
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import TargetColumn

TYPES = {
    "int": "int(11)",
    "bigint": "bigint(20)",
    "decimal": "decimal(12,2)",
    "double": "double",
    "datetime": "datetime(6)",
    "timestamp": "timestamp",
    "date": "date",
    "time": "time(3)",
    "varchar": "varchar(4)",
    "text": "text",
    "varbinary": "varbinary(32)",
    "vector": "vector(8)",
    "float": "float",
    "year": "year(4)",
    "enum": "enum('x','2','it''s','a\\\\b /* c','\\n','é, 1','','-','t')",
    "set": "set('x','2','t','-')",
}
digits = st.integers(-(10**14), 10**14).map(str)
numbers = digits | st.decimals(-1000, 1000, places=3).map(str) | st.floats(allow_nan=True).map(str)
moments = (
    st.datetimes().map(str) | st.datetimes().map(lambda each: f"{each:%Y-%m-%dT%H:%M:%S}+00") | st.dates().map(str)
)
odd = st.sampled_from(
    ["-", "", "\n", "1\n2", "t", "1.50\n", "2026-01-01 00:00:00+00", "2026-01-01 00:00:00.5+02", "\\x0aff"]
)
anything = st.none() | (numbers | moments | st.times().map(str) | odd | st.text(max_size=6)).map(str.encode)


def literals(kind: str, source: str, values: list[bytes | None]) -> list[bytes] | None:
    """None if a value is refused."""
    try:
        return literals_of(source, TargetColumn("c", TYPES[kind], kind))(values)
    except ApplyError as error:
        assert error.code == "GGS-00482"
        return None


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("source", ["same", "text", "timestamp with time zone", "bytea"])
@given(st.lists(anything, max_size=4) | st.lists(st.none() | digits.map(str.encode), max_size=4))
def test_a_value_has_the_same_literal_alone_and_among_others(
    kind: str, source: str, values: list[bytes | None]
) -> None:
    origin = TYPES[kind] if source == "same" else source
    alone = [literals(kind, origin, [value]) for value in values]
    wanted = None if None in alone else [literal for each in alone if each is not None for literal in each]
    assert literals(kind, origin, values) == wanted


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("int", [b"1", None, b"-20"], [b"1", b"NULL", b"-20"]),
        ("decimal", [b"1.25", b"3", b"1.000"], [b"1.25", b"3", b"1.00"]),
        ("double", [b"1.5", b"-2"], [b"1.5e0", b"-2e0"]),
        ("datetime", [b"2026-01-02 03:04:05.600000", None], [b"'2026-01-02 03:04:05.600000'", b"NULL"]),
        ("datetime", [b"2026-01-02 03:04:05+00", b"2026-01-02 03:04:06.5+00"], [b"'2026-01-02 03:04:05'", b"'2026-01-02 03:04:06.5'"]),  # noqa: E501
        ("datetime", [b"2026-01-02 03:04:05+00", b"2026-01-02 03:04:06"], [b"'2026-01-02 03:04:05'", b"'2026-01-02 03:04:06'"]),
        ("date", [b"2026-01-02", b"2026-01-02 00:00:00"], [b"'2026-01-02'", b"'2026-01-02'"]),
        ("time", [b"-12:00:01.5", b"838:59:59"], [b"'-12:00:01.5'", b"'838:59:59'"]),
        ("text", [b"it's", b"", None], [b"'it''s'", b"''", b"NULL"]),
        ("varbinary", [b"\\x00ff", b"\\x"], [b"x'00ff'", b"x''"]),
        ("vector", [b"\\x0000803f", None], [b"x'0000803f'", b"NULL"]),
        ("float", [b"3.4028235e+38", b"-3.4028235e38"], [b"3.4028234663852886e+38", b"-3.4028234663852886e+38"]),
        ("float", [b"340282350000000000000000000000000000000", b"0.1"], [b"3.4028234663852886e+38", b"0.1e0"]),
        ("float", [b"3.5e38", b"1e39"], [b"3.5e38", b"1e39"]),
        ("year", [b"0000", b"0", b"1901", b"2155"], [b"0", b"0", b"1901", b"2155"]),
        ("enum", [b"2", b"x", None, b""], [b"'2'", b"'x'", b"NULL", b"''"]),
        ("enum", [b"it's", b"a\\b /* c", b"\n", "é, 1".encode()], [b"'it''s'", b"'a\\b /* c'", b"'\n'", "'é, 1'".encode()]),
        ("set", [b"x,t", b"", b"2"], [b"'x,t'", b"''", b"'2'"]),
    ],
)  # fmt: skip
def test_the_literals_of_a_column(kind: str, values: list[bytes | None], wanted: list[bytes]) -> None:
    assert literals(kind, TYPES[kind], values) == wanted


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", b"-"),
        ("int", b"1.5"),
        ("decimal", b"1.255"),
        ("decimal", b"NaN"),
        ("double", b"Infinity"),
        ("timestamp", b"2026-01-02 03:04:05.5"),
        ("date", b"2026-01-02 03:00:00"),
        ("time", b"12:00:00.1234"),
        ("year", b"5"),
        ("year", b"70"),
        ("year", b"0099"),
        ("enum", b"3"),
        ("enum", b"X"),
        ("enum", b"x "),
        ("set", b"1"),
        ("set", b"X"),
        ("set", b"t,x"),
        ("set", b"x,x"),
    ],
)
def test_a_value_that_the_server_would_change_is_refused_among_others(kind: str, value: bytes) -> None:
    fits = {"int": b"1", "decimal": b"1", "double": b"1", "timestamp": b"2026-01-02 03:04:05", "date": b"2026-01-02"}
    fits |= {"year": b"1999", "enum": b"x", "set": b"x"}
    assert literals(kind, TYPES[kind], [fits.get(kind, b"12:00:00"), value]) is None
