"""Comparing two values by their texts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ggshell.pipeline.apply.column_groups import order_of

ASCENDING = {
    "numeric(10,2)": ["-Infinity", "-10", "-9.5", "0", "9", "10.01", "1e3", "Infinity", "NaN"],
    "timestamp with time zone": [
        "-infinity",
        "4713-01-01 00:00:00+00 BC",
        "0044-03-15 12:00:00+00 BC",
        "0001-01-01 00:00:00+00",
        "1999-12-31 23:59:59.5+00",
        "2000-02-29 01:00:00+05:30",
        "2000-02-29 00:00:00+00",
        "2000-02-28 23:00:00.000001-02",
        "2000-03-01 00:00:00+00",
        "9999-12-31 00:00:00+00",
        "10000-01-01 00:00:00+00",
        "infinity",
    ],
    "date": ["0001-01-01 BC", "0001-01-01", "2024-02-29", "2024-03-01"],
    "time(3) without time zone": ["00:00:00", "10:00:00", "10:00:00.5", "24:00:00"],
    "boolean": ["f", "t"],
    "character varying(5)": ["", "B", "a", "ä", "日"],
    "bytea": ["\\x00", "\\x0a", "\\xff", "\\xff00"],
}


@pytest.mark.parametrize("type_name", ASCENDING)
def test_values_are_ordered_as_by_the_database(type_name: str) -> None:
    order = order_of(type_name)
    assert order is not None
    ranks = [order(value.encode()) for value in ASCENDING[type_name]]
    assert all(less < more for less, more in pairwise(ranks))  # type: ignore[operator]


def test_equal_values_have_the_same_rank_in_any_notation() -> None:
    number, moment = order_of("numeric"), order_of("timestamptz")
    assert number is not None
    assert moment is not None
    assert number(b"1.0") == number(b"1.00")
    assert moment(b"2026-01-01 00:00:00+00") == moment(b"2025-12-31 22:00:00.0-02:00")


@pytest.mark.parametrize(
    "type_name", ["interval", "money", "mood", "int4range", "text[]", "time with time zone", "jsonb"]
)
def test_a_type_whose_order_cannot_be_derived_from_texts_has_none(type_name: str) -> None:
    assert order_of(type_name) is None
