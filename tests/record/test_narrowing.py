"""Conversions that change a source value silently, compared with what PostgreSQL does for each pair of types."""

from __future__ import annotations

import psycopg
import pytest

from ggshell.pipeline.apply.unmapped import Silent, silent_changes
from ggshell.record.families import fits

VALUES = {
    "smallint": "-32767",
    "integer": "2147483647",
    "bigint": "9223372036854775807",
    "numeric": "12345678901234567890.12345678901234567890",
    "numeric(10,4)": "123456.7891",
    "numeric(6,2)": "1234.56",
    "numeric(8)": "12345678",
    "real": "0.12345679",
    "double precision": "0.12345678901234568",
    "money": "$12.34",
    "date": "2026-01-01",
    "timestamp without time zone": "2026-01-01 10:11:12.123456",
    "timestamp(0) without time zone": "2026-01-01 10:11:12",
    "timestamp(3) without time zone": "2026-01-01 10:11:12.123",
    "timestamp with time zone": "2026-01-01 10:11:12.123456+00",
    "timestamp(0) with time zone": "2026-01-01 10:11:12+00",
    "time without time zone": "10:11:12.123456",
    "time(0) without time zone": "10:11:12",
    "time with time zone": "10:11:12.123456+02",
    "interval": "1 day 00:00:00.123456",
    "interval(0)": "1 day 00:00:01",
    '"char"': "a",
    "name": "n" * 63,
    "text": '{"b": 1,  "a": 2}' + "x" * 100,
    "character varying(70)": "y" * 70,
    "character varying(5)": "ab   ",
    "character(5)": "ab",
    "json": '{"b": 1,  "a": 2}',
    "jsonb": '{"a": 2, "b": 1}',
    "boolean": "true",
    "uuid": "00000000-0000-0000-0000-000000000001",
    "bit varying": "1010",
    "bit(4)": "1010",
    "inet": "10.1.2.3/8",
    "cidr": "10.0.0.0/8",
}
AS_TEXT = {"text": ("text that ends in blanks  ", "x" * 100, '{"b": 1,  "a": 2}'), "character varying(5)": ("ab   ",)}


def test_every_silent_change_that_postgres_makes_is_reported(north: str) -> None:
    silent: set[tuple[str, str]] = set()
    with psycopg.connect(north, autocommit=True) as connection:
        for number, target in enumerate(VALUES):
            connection.execute(f"CREATE TEMP TABLE t{number} (v {target})")
            for source, value_of in VALUES.items():
                for value in AS_TEXT.get(source, (value_of,)):
                    if source != target and _changes(connection, f"t{number}", source, value):
                        silent.add((source, target))
    assert len(silent) > 30
    missed = {pair for pair in silent if not {*silent_changes(*pair)} - {Silent.TAKEN_AS_UTC}}
    assert missed == set()


def _changes(connection: psycopg.Connection, table: str, source: str, value: str) -> bool:
    """Whether a column accepts a value's text without an error and then holds a different value."""
    query = f"INSERT INTO {table} VALUES (%s) RETURNING v::text::{source}::text IS DISTINCT FROM %s::{source}::text"
    try:
        return connection.execute(query, [value, value]).fetchone() == (True,)
    except psycopg.Error:
        return False


def test_lossless_conversions_are_not_reported() -> None:
    lossless_types = [
        "integer",
        "bigint",
        "numeric",
        "text",
        "character varying(20)",
        "timestamp without time zone",
        "interval",
        "uuid",
    ]
    lossless = [(name, name) for name in lossless_types] + [
        ("smallint", "integer"),
        ("integer", "bigint"),
        ("bigint", "numeric"),
        ("numeric(10,2)", "numeric(20,2)"),
        ("numeric(10,2)", "numeric(10,4)"),
        ("real", "double precision"),
        ("integer", "double precision"),
        ("date", "timestamp without time zone"),
        ("timestamp(3) without time zone", "timestamp without time zone"),
        ("jsonb", "json"),
        ("integer[]", "bigint[]"),
        ("character(5)", "text"),
        ("NUMBER(10)", "numeric"),
        ("mood", "text"),
        ("public.pair", "public.pair"),
    ]
    assert [pair for pair in lossless if silent_changes(*pair)] == []


def test_arrays_narrow_like_their_elements() -> None:
    assert silent_changes("double precision[]", "real[]") == (Silent.CUT,)
    assert silent_changes("timestamp without time zone[]", "date[]") == (Silent.CUT,)


ZONED = {
    "timestamp without time zone": ("2026-07-01 10:11:12", "2026-01-01 03:11:12"),
    "timestamp(3) with time zone": ("2026-07-01 10:11:12.123+00", "2026-01-01 22:11:12.123+00"),
    "date": ("2026-07-01",),
    "time without time zone": ("10:11:12",),
    "time with time zone": ("10:11:12+02",),
    "interval": ("10:11:12",),
    "tsrange": ('["2026-07-01 10:11:12","2026-07-01 10:11:13")',),
    "tstzrange": ('["2026-07-01 02:11:12+00","2026-07-02 22:11:13+00")',),
    "daterange": ("[2026-07-01,2026-07-03)",),
}
ZONED |= {
    f"{name}[]": tuple(f"{{{value}}}" for value in values) for name, values in ZONED.items() if "range" not in name
}
KOLKATA = "Asia/Kolkata"


def test_every_conversion_that_depends_on_the_session_time_zone_is_reported(north: str) -> None:
    """Finding: timestamp to timestamptz, and back, was converted as UTC and not reported.

    Each value is copied from a source's text into a target's column, in sessions in UTC and in another time zone. Where the
    target holds different values, ggshell must report that it assumed UTC."""
    zone_dependent: set[tuple[str, str]] = set()
    accepted: set[tuple[str, str]] = set()
    pairs = [(source, target) for source in ZONED for target in ZONED if fits(source, target)]
    with psycopg.connect(north, autocommit=True) as connection:
        for number, (source, target) in enumerate(pairs):
            connection.execute(f"CREATE TEMP TABLE z{number} (v {target})")
            for value in ZONED[source]:
                in_utc, in_kolkata = (_stored(connection, number, source, value, zone) for zone in ("UTC", KOLKATA))
                accepted |= {(source, target)} if in_utc is not None else set()
                if in_utc != in_kolkata:
                    zone_dependent.add((source, target))
    assert len(zone_dependent) > 10
    utc_reasons = {Silent.TAKEN_AS_UTC, Silent.SHOWN_IN_UTC}
    reported = {pair for pair in pairs if utc_reasons & {*silent_changes(*pair)}}
    assert zone_dependent - reported == set()
    assert (reported & accepted) - zone_dependent == set()


def _stored(connection: psycopg.Connection, number: int, source: str, value: str, zone: str) -> str | None:
    """The value that a target column stores for a source value in sessions with a time zone; None if it is refused."""
    connection.execute(f"SET TimeZone = '{zone}'")
    (text,) = connection.execute(f"SELECT '{value}'::{source}::text").fetchone() or ("",)
    try:
        connection.execute(f"TRUNCATE z{number}")
        connection.execute(f"INSERT INTO z{number} VALUES (%s)", [text])
    except psycopg.Error:
        return None
    finally:
        connection.execute("SET TimeZone = 'UTC'")
    (held,) = connection.execute(f"SELECT v::text FROM z{number}").fetchone() or ("",)
    return str(held)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("timestamp without time zone", "timestamp with time zone", (Silent.TAKEN_AS_UTC,)),
        ("timestamp with time zone", "timestamp without time zone", (Silent.SHOWN_IN_UTC,)),
        ("timestamp with time zone", "timestamp(0) without time zone", (Silent.SHOWN_IN_UTC, Silent.CUT)),
        ("timestamp with time zone[]", "timestamp without time zone[]", (Silent.SHOWN_IN_UTC,)),
        ("timestamp with time zone", "date", (Silent.SHOWN_IN_UTC, Silent.CUT)),
        ("date", "timestamp with time zone", (Silent.TAKEN_AS_UTC,)),
        ("time without time zone", "time with time zone", (Silent.TAKEN_AS_UTC,)),
        ("time with time zone", "time without time zone", (Silent.OFFSET_DROPPED,)),
        ("tsrange", "tstzrange", (Silent.TAKEN_AS_UTC,)),
        ("tstzmultirange", "tsmultirange", (Silent.SHOWN_IN_UTC,)),
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", (Silent.TAKEN_AS_UTC,)),
        ("timestamp without time zone", "TIMESTAMP_MS", (Silent.CUT,)),
        ("double precision", "FLOAT", (Silent.CUT,)),
        ("timestamp without time zone", "TIMESTAMP_NS", ()),
    ],
)
def test_the_reason_describes_the_change_of_the_values(source: str, target: str, expected: tuple[Silent, ...]) -> None:
    assert silent_changes(source, target) == expected
