"""One SQL dialect for both engines, and the adaptations that each of them needs.

The common dialect is Spark's, with double quotes around names. If DuckDB has another name for a function, a macro provides
Spark's name. A column of trails whose name is a reserved word in DuckDB is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ggshell.types import text_literal

MACROS: Final = (
    "CREATE OR REPLACE MACRO element_at(collection, key) AS collection[key]",
    "CREATE OR REPLACE MACRO map_contains_key(collection, key) AS map_contains(collection, key)",
    "CREATE OR REPLACE MACRO unix_micros(moment) AS epoch_us(moment)",
    "CREATE OR REPLACE MACRO timestamp_micros(number) AS make_timestamp(number)::TIMESTAMPTZ",
    "CREATE OR REPLACE MACRO conv(digits, base, to_base) AS CASE WHEN base = 16 AND to_base = 10"
    " THEN CAST(CAST('0x' || digits AS BIGINT) AS VARCHAR)"
    # Not error(), with which no window could be ordered by the value.
    " ELSE CAST(CAST('conv converts only from 16 to 10, not ' || digits AS BIGINT) AS VARCHAR) END",
    "CREATE OR REPLACE MACRO rlike(value, pattern) AS regexp_matches(value, pattern)",
    # DuckDB's own replaces only the first match
    "CREATE OR REPLACE MACRO regexp_replace(text, pattern, put) AS system.main.regexp_replace(text, pattern, put, 'g')",
    # DuckDB's own ignores NULLs
    "CREATE OR REPLACE MACRO concat(a, b) AS a || b, (a, b, c) AS a || b || c, (a, b, c, d) AS a || b || c || d,"
    " (a, b, c, d, e) AS a || b || c || d || e, (a, b, c, d, e, f) AS a || b || c || d || e || f",
    "CREATE OR REPLACE MACRO datediff(later, earlier) AS date_diff('day', CAST(earlier AS DATE), CAST(later AS DATE))",
    "CREATE OR REPLACE MACRO percentile_approx(value, part) AS quantile_disc(value, part)",
)
"""The macros that DuckDB needs."""

_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\w+|.", re.DOTALL)
_RESERVED: Final = frozenset({"table"})
_QUERIES: Final = frozenset({"select", "with", "from", "values", "("})
COMMENTS: Final = ("--", "/*")


def is_query(sql: str) -> bool:
    """Whether a text is a single statement that only reads."""
    found = [piece for piece in pieces(sql) if not piece.isspace() and not piece.startswith(COMMENTS)]
    while found and found[-1] == ";":
        found.pop()
    return bool(found) and found[0].lower() in _QUERIES and ";" not in found


def pieces(sql: str) -> list[str]:
    """Split a statement into texts, quoted names, comments, words and single characters."""
    return _PIECE.findall(sql)


def spelled(sql: str) -> str:
    """Quote the words that are columns of trails but reserved by an engine."""
    return "".join(f'"{piece}"' if piece.lower() in _RESERVED else piece for piece in pieces(sql)).strip().rstrip(";")


def for_spark(sql: str) -> str:
    """Escape backslashes, so that Spark reads them literally.

    In a LIKE pattern without ESCAPE, Spark also uses the backslash as the escape character, so it is escaped twice.
    """
    found = pieces(sql)
    words = [place for place, piece in enumerate(found) if not piece.isspace() and not piece.startswith(COMMENTS)]
    for number, place in enumerate(words):
        if found[place].startswith("'"):
            before, after = (found[near].lower() for near in (words[number - 1], words[(number + 1) % len(words)]))
            is_pattern = number > 0 and before in ("like", "ilike") and after != "escape"
            found[place] = found[place].replace("\\", "\\" * (4 if is_pattern else 2))
    return "".join(found)


def columns_of(sql: str, every: Iterable[str]) -> tuple[str, ...]:
    """The columns that a statement can refer to: those named in it, or all if it has a star that can mean any column.

    The star of ``count(*)``, of a multiplication or of a comment's end cannot. In doubt a star can.
    """
    found = [piece for piece in pieces(sql) if not piece.isspace() and not piece.startswith(COMMENTS)]
    words = {
        _name(piece) for place, piece in enumerate(found) if not piece.startswith("'") and not _is_view(found, place)
    }
    columns = tuple(every)
    stars = [place for place, piece in enumerate(found) if piece == "*"]
    if "natural" in words or any(not _counts(found, place) for place in stars):
        return columns
    if _name(found[0] if found else "") == "from":  # a statement without SELECT returns all columns
        return columns
    return tuple(name for name in columns if name in words)


def _name(piece: str) -> str:
    return piece.strip('"').lower()


def _is_view(found: list[str], place: int) -> bool:
    """Whether a word names a view: after FROM or JOIN, or before a dot."""
    before = found[place - 1].lower() if place else ""
    after = found[place + 1] if place + 1 < len(found) else ""
    return before in ("from", "join") or (after == "." and before != ".")


def _counts(found: list[str], place: int) -> bool:
    """Whether the star at a position belongs to ``count(*)``, or stands between two values."""
    before = found[place - 1].lower() if place else ""
    if before == "(":
        return place > 1 and found[place - 2].lower() == "count"
    after = found[place + 1].lower() if place + 1 < len(found) else ""
    multiplied = before not in ("select", ",", ".", "distinct", "all") and bool(re.match(r"[\w(\"']", after))
    return multiplied and after not in ("from", "exclude", "except", "replace")


def literal(value: str | int | float) -> str:
    """An SQL literal in which a backslash stands for itself; for Spark see ``for_spark``."""
    return text_literal(value) if isinstance(value, str) else str(value)


SPARK_SETTINGS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""The settings with which Spark understands the common dialect."""
