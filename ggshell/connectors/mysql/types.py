"""The types of PostgreSQL and MariaDB, and those of a MariaDB target that hold their values."""

from __future__ import annotations

from typing import Final

from ggshell.connectors.type_pairs import Grade, KindPairs, TypePair, exact

_MOMENTS: Final = "years 0001 to 9999; no infinity; the digits of the column's fraction"
_FIRST: Final = "2024-02-29 23:59:59.999999"

FROM_POSTGRESQL: Final = KindPairs(
    "PostgreSQL",
    "MariaDB",
    (
        exact("smallint", "smallint", "-32768", "32767"),
        exact("integer", "int", "-2147483648", "2147483647"),
        exact("bigint", "bigint", "-9223372036854775808", "9223372036854775807"),
        exact("numeric(12,2)", "decimal(12,2)", "-9999999999.99", "0.05"),
        TypePair(
            "numeric",
            "decimal(65,30)",
            Grade.LIMITED,
            "35 digits before the point and 30 after it; no NaN, no infinity",
            {"12.5": "12.500000000000000000000000000000"},
            ("NaN", "Infinity", "0." + "0" * 30 + "1", "1" + "0" * 35),
        ),
        TypePair("real", "float", Grade.LIMITED, "no NaN, no infinity", {"0.1": "0.1", "1e+30": "1e30"}, ("NaN",)),
        TypePair(
            "double precision",
            "double",
            Grade.LIMITED,
            "no NaN, no infinity",
            {"0.1": "0.1", "1.7976931348623157e+308": "1.7976931348623157e308"},
            ("NaN", "-Infinity"),
        ),
        TypePair("boolean", "tinyint(1)", Grade.MAPPED, "1 and 0", {"t": "1", "f": "0"}),
        exact("text", "longtext", "", "it's \\ 日本 😀"),
        TypePair(
            "text",
            "varchar(5)",
            Grade.LIMITED,
            "the length of the column, also for spaces at the end",
            {"Zoë  ": "Zoë  "},
            ("abcdef", "abcde "),
        ),
        TypePair("bytea", "longblob", Grade.LIMITED, "max_allowed_packet", {"\\x00ff5c": "\\x00ff5c", "\\x": "\\x"}),
        TypePair(
            "date",
            "date",
            Grade.LIMITED,
            "years 0001 to 9999; no infinity",
            {"9999-12-31": "9999-12-31"},
            ("infinity",),
        ),
        exact("time(6) without time zone", "time(6)", "23:59:59.999999"),
        TypePair(
            "timestamp without time zone",
            "datetime(6)",
            Grade.LIMITED,
            _MOMENTS,
            {_FIRST: _FIRST},
            ("infinity", "0044-03-15 10:00:00 BC", "294276-12-31 23:59:59"),
        ),
        TypePair(
            "timestamp with time zone",
            "datetime(6)",
            Grade.LIMITED,
            f"in UTC; {_MOMENTS}",
            {
                "2024-03-31 01:30:00.5+00": "2024-03-31 01:30:00.500000",
                "2024-03-31 01:30:00+02": "2024-03-30 23:30:00.000000",
            },
            ("-infinity",),
        ),
        exact("uuid", "uuid", "6ccd780c-baba-1026-9564-5b8c656024db"),
        exact("json", "json", '{"a":  [1, null]}'),
        exact("jsonb", "json", '{"a": [1, null]}'),
        exact("bit(4)", "bit(4)", "0101"),
        TypePair("interval", "varchar(100)", Grade.MAPPED, "PostgreSQL's text", {"1 day 02:00:00": "1 day 02:00:00"}),
        TypePair("integer[]", "longtext", Grade.MAPPED, "PostgreSQL's text", {"{1,NULL}": "{1,NULL}"}),
        TypePair("inet", "varchar(50)", Grade.MAPPED, "PostgreSQL's text", {"192.168.0.1/24": "192.168.0.1/24"}),
    ),
)
_BINARY: Final = ("\\x00ff5c", "\\x")
FROM_MARIADB: Final = KindPairs(
    "MariaDB",
    "MariaDB",
    (
        exact("tinyint", "tinyint", "-128", "127"),
        exact("mediumint unsigned", "mediumint unsigned", "16777215"),
        exact("bigint unsigned", "bigint unsigned", "18446744073709551615"),
        TypePair(
            "decimal(10,4)",
            "decimal(10,2)",
            Grade.LIMITED,
            "the decimal places of the column",
            {"1.5000": "1.50"},
            ("1.0050",),
        ),
        exact("decimal(65,30)", "decimal(65,30)", "9" * 35 + "." + "9" * 30),
        exact("float", "float", "0.1", "1e30"),
        exact("double", "double", "0.0000001", "-1.7976931348623157e308"),
        exact("bit(13)", "bit(13)", "0000000000101"),
        exact("year", "year", "1901", "0000"),
        exact("date", "date", "0000-00-00", "2024-02-31"),
        TypePair(
            "time(6)",
            "time(3)",
            Grade.LIMITED,
            "the digits of the column",
            {"-837:59:59.500000": "-837:59:59.500"},
            ("00:00:00.000001",),
        ),
        TypePair(
            "datetime(6)",
            "datetime",
            Grade.LIMITED,
            "the digits of the column",
            {"2024-01-01 00:00:00.000000": "2024-01-01 00:00:00"},
            (_FIRST,),
        ),
        exact("timestamp(6)", "timestamp(6) NULL", "0000-00-00 00:00:00.000000", "2024-03-31 01:30:00.000001"),
        exact("char(5)", "char(5)", "abc"),
        exact("varchar(70)", "varchar(70)", "tab\there", "new\nline ", "'\\"),
        TypePair("longtext", "tinytext", Grade.LIMITED, "the length of the column", {"a": "a"}, ("x" * 256,)),
        exact("binary(3)", "binary(3)", "\\x00ff5c"),
        exact("longblob", "longblob", *_BINARY),
        TypePair("blob", "text", Grade.MAPPED, "`\\x` and hexadecimal digits", {value: value for value in _BINARY}),
        TypePair("enum", "enum('new','é, x')", Grade.LIMITED, "the labels of the column", {"é, x": "é, x"}, ("other",)),
        TypePair("set", "set('a','b')", Grade.LIMITED, "the labels of the column", {"a,b": "a,b", "": ""}, ("c",)),
        exact("json", "json", '{"a": [1, null]}'),
        exact("point", "point", "0101000000000000000000F03F0000000000000040"),
    ),
)
