"""The types of MariaDB, and those of a PostgreSQL target that hold their values."""

from __future__ import annotations

from typing import Final

from ggshell.connectors.type_pairs import Grade, KindPairs, TypePair, exact

_FIRST: Final = "2024-02-29 23:59:59.999999"
_ZEROS: Final = "no dates with zeros"

FROM_MARIADB: Final = KindPairs(
    "MariaDB",
    "PostgreSQL",
    (
        exact("tinyint, smallint", "smallint", "-32768", "32767"),
        exact("mediumint, int", "integer", "-2147483648"),
        exact("int unsigned, bigint", "bigint", "4294967295"),
        exact("bigint unsigned", "numeric(20)", "18446744073709551615"),
        exact("decimal(65,30)", "numeric(65,30)", "9" * 35 + "." + "9" * 30),
        TypePair("float", "real", Grade.EXACT, "", {"0.1": "0.1", "1e30": "1e+30"}),
        TypePair("double", "double precision", Grade.EXACT, "", {"0.1": "0.1", "1e-7": "1e-07"}),
        exact("bit(13)", "bit(13)", "0000000000101"),
        TypePair("tinyint(1)", "boolean", Grade.LIMITED, "1 and 0", {"1": "true", "0": "false"}, ("2",)),
        exact("year", "smallint", "1901"),
        TypePair("date", "date", Grade.LIMITED, _ZEROS, {"9999-12-31": "9999-12-31"}, ("0000-00-00", "2024-02-31")),
        TypePair("time(6)", "interval", Grade.EXACT, "also negative times", {"-837:59:59.5": "-837:59:59.5"}),
        TypePair(
            "time(6)", "time(6)", Grade.LIMITED, "0 to 24 hours", {"23:59:59.999999": "23:59:59.999999"}, ("25:00:00",)
        ),
        TypePair("datetime(6)", "timestamp(6)", Grade.LIMITED, _ZEROS, {_FIRST: _FIRST}, ("0000-00-00 00:00:00",)),
        TypePair(
            "timestamp(6)",
            "timestamp with time zone",
            Grade.LIMITED,
            f"in UTC; {_ZEROS}",
            {_FIRST: f"{_FIRST}+00"},
            ("0000-00-00 00:00:00",),
        ),
        TypePair(
            "char, varchar, text", "text", Grade.LIMITED, "no zero byte", {"'\\ 日本 😀 ": "'\\ 日本 😀 "}, ("\0",)
        ),
        exact("binary, varbinary, blob", "bytea", "\\x00ff5c", "\\x"),
        exact("enum, set", "text", "a,b"),
        exact("json", "json", '{"b":  1, "a": 2}'),
        TypePair("json", "jsonb", Grade.MAPPED, "the same document, written by PostgreSQL", {'{"b":  1}': '{"b": 1}'}),
        TypePair(
            "geometry",
            "text",
            Grade.MAPPED,
            "hexadecimal digits of the well-known binary form; PostGIS reads them",
            {"0101000000000000000000F03F0000000000000040": "0101000000000000000000F03F0000000000000040"},
        ),
    ),
)
