"""How values of PostgreSQL and MariaDB arrive in the current tables of a lake: a part of docs/types.md.

``query.values`` converts them. The log of a lake has the text of every value.
"""

from __future__ import annotations

from typing import Final

from ggshell.connectors.type_pairs import Grade, KindPairs, TypePair, exact

_NO_NUMBER: Final = "no NaN, no infinity"
_YEARS: Final = "years 0001 to 9999; no infinity"


def _text(source: str, *values: str, form: str = "PostgreSQL's text") -> TypePair:
    return TypePair(source, "string", Grade.MAPPED, form, {value: value for value in values})


def _years(source: str, target: str, values: dict[str, str], limits: str = _YEARS) -> TypePair:
    beyond = ("infinity", "-infinity", *(f"{value} BC" for value in values))
    return TypePair(source, target, Grade.NULLED, limits, values, beyond)


FROM_POSTGRESQL: Final = KindPairs(
    "PostgreSQL",
    "lakes",
    (
        TypePair("smallint", "short", Grade.EXACT, "Iceberg: int", {"-32768": "-32768", "32767": "32767"}),
        exact("integer", "int", "-2147483648", "2147483647"),
        exact("bigint", "long", "-9223372036854775808", "9223372036854775807"),
        TypePair(
            "numeric(12,2)",
            "decimal(12,2)",
            Grade.NULLED,
            _NO_NUMBER,
            {"-9999999999.99": "-9999999999.99", "0.10": "0.10"},
            ("NaN",),
        ),
        exact("numeric(38,9)", "decimal(38,9)", "12345678901234567890123456789.123456789"),
        exact("numeric(2,5)", "decimal(5,5)", "0.00099"),
        _text("numeric(50,10)", "1234567890123456789012345678901234567890.1234567890"),
        _text("numeric", "0.1000", "NaN", "Infinity"),
        TypePair("real", "float", Grade.EXACT, values={"1.5": "1.5", "NaN": "nan", "-Infinity": "-inf"}),
        TypePair("double precision", "double", Grade.EXACT, values={"0.1": "0.1", "NaN": "nan", "Infinity": "inf"}),
        TypePair("boolean", "boolean", Grade.EXACT, values={"t": "t", "f": "f"}),
        exact("text", "string", "", "é, 'x', \\N"),
        exact("character varying(9)", "string", "new  "),
        exact("character(5)", "string", "ab   "),
        exact("bit(4)", "string", "0101"),
        _text("money", "$12.50"),
        TypePair("bytea", "binary", Grade.EXACT, values={"\\x": "\\x", "\\x00ff": "\\x00ff"}),
        _years("date", "date", {"0001-01-01": "0001-01-01", "9999-12-31": "9999-12-31"}),
        _years(
            "timestamp without time zone",
            "timestamp without zone",
            {
                "2026-11-26 23:59:59.123456": "2026-11-26 23:59:59.123456",
                "1582-10-04 12:00:00": "1582-10-04 12:00:00.000000",
            },
        ),
        _years(
            "timestamp with time zone",
            "timestamp with zone",
            {
                "2026-11-26 23:59:59.123456+00": "2026-11-26 23:59:59.123456+00",
                "2026-11-27 02:00:00+05:30": "2026-11-26 20:30:00.000000+00",
            },
            f"in UTC; {_YEARS}",
        ),
        _text("time without time zone", "24:00:00"),
        _text("interval", "1 mon -2 days +03:00:00"),
        _text("uuid", "6f0b2b0e-8f6a-4a4e-9d2e-0d6f1f3f7a11"),
        _text("json", '{"a":  1}'),
        _text("jsonb", '{"a": [1, null]}'),
        _text("integer[]", "{1,NULL,3}"),
        _text("int4range", "[1,5)"),
        _text("inet", "10.0.0.0/8"),
        _text("an enum", "new"),
    ),
)
_ZEROS: Final = "no dates with zeros"
_FIRST: Final = "2024-02-29 23:59:59.999999"

FROM_MARIADB: Final = KindPairs(
    "MariaDB",
    "lakes",
    (
        TypePair("tinyint", "short", Grade.EXACT, "Iceberg: int", {"-128": "-128", "127": "127"}),
        TypePair("smallint", "short", Grade.EXACT, "Iceberg: int", {"-32768": "-32768"}),
        exact("smallint unsigned", "int", "65535"),
        exact("mediumint", "int", "-8388608"),
        exact("int", "int", "-2147483648", "2147483647"),
        exact("int unsigned", "long", "4294967295"),
        exact("bigint", "long", "9223372036854775807"),
        exact("bigint unsigned", "decimal(20,0)", "18446744073709551615"),
        exact("decimal(38,9)", "decimal(38,9)", "9" * 29 + "." + "9" * 9),
        _text("decimal(65,30)", "1." + "0" * 30, form="the number as text"),
        TypePair("float", "float", Grade.EXACT, values={"1.5": "1.5"}),
        TypePair("double", "double", Grade.EXACT, values={"0.1": "0.1", "-1.5e300": "-1.5e+300"}),
        TypePair("date", "date", Grade.NULLED, _ZEROS, {"9999-12-31": "9999-12-31"}, ("0000-00-00", "2024-02-31")),
        TypePair(
            "datetime(6)", "timestamp without zone", Grade.NULLED, _ZEROS, {_FIRST: _FIRST}, ("0000-00-00 00:00:00",)
        ),
        TypePair(
            "timestamp(6)",
            "timestamp with zone",
            Grade.NULLED,
            f"in UTC; {_ZEROS}",
            {_FIRST: f"{_FIRST}+00", "2024-03-31 01:30:00": "2024-03-31 01:30:00.000000+00"},
            ("0000-00-00 00:00:00",),
        ),
        TypePair("blob", "binary", Grade.EXACT, values={"\\x": "\\x", "\\x00ff5c": "\\x00ff5c"}),
        TypePair("varbinary(3)", "binary", Grade.EXACT, values={"\\x00ff5c": "\\x00ff5c"}),
        exact("varchar(9)", "string", "tab\there", "'\\"),
        _text("time(6)", "-837:59:59.500000", form="the time as text"),
        _text("bit(13)", "0000000000101", form="binary digits"),
        _text("year", "2026", form="the digits"),
        _text("json", '{"b":  1}', form="the document"),
        _text("enum", "new", form="the label"),
    ),
)
