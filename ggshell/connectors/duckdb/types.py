"""The types of MariaDB, and those of a DuckDB target that hold their values."""

from __future__ import annotations

from typing import Final

from ggshell.connectors.type_pairs import Grade, KindPairs, TypePair, exact

_FIRST: Final = "2024-02-29 23:59:59.999999"
_ZEROS: Final = "no dates with zeros"

FROM_MARIADB: Final = KindPairs(
    "MariaDB",
    "DuckDB",
    (
        exact("tinyint, smallint", "SMALLINT", "-32768", "32767"),
        exact("mediumint, int", "INTEGER", "-2147483648"),
        exact("bigint", "BIGINT", "9223372036854775807"),
        exact("bigint unsigned", "UBIGINT", "18446744073709551615"),
        exact("decimal(38,9)", "DECIMAL(38,9)", "9" * 29 + "." + "9" * 9),
        TypePair("decimal(65,30)", "VARCHAR", Grade.MAPPED, "the number as text", {"1." + "0" * 30: "1." + "0" * 30}),
        TypePair("double", "DOUBLE", Grade.EXACT, "", {"0.1": "0.1"}),
        exact("bit(13)", "VARCHAR", "0000000000101"),
        TypePair("date", "DATE", Grade.LIMITED, _ZEROS, {"9999-12-31": "9999-12-31"}, ("0000-00-00",)),
        TypePair(
            "time(6)", "TIME", Grade.LIMITED, "0 to 24 hours", {"23:59:59.999999": "23:59:59.999999"}, ("-01:00:00",)
        ),
        TypePair("datetime(6)", "TIMESTAMP", Grade.LIMITED, _ZEROS, {_FIRST: _FIRST}, ("0000-00-00 00:00:00",)),
        TypePair(
            "timestamp(6)",
            "TIMESTAMPTZ",
            Grade.LIMITED,
            f"in UTC; {_ZEROS}",
            {_FIRST: f"{_FIRST}+00"},
            ("0000-00-00 00:00:00",),
        ),
        exact("char, varchar, text, enum, set", "VARCHAR", "'\\ 日本 😀 "),
        exact("blob", "BLOB", "\\x00ff5c", "\\x"),
        exact("json", "JSON", '{"b":  1}'),
    ),
)
