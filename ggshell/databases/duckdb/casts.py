"""A source's text values as values of a DuckDB column, and back.

The texts are PostgreSQL's, or those that the redo reader makes in the same form.  Where DuckDB would take another text for
the same value, it is rewritten; where it would change a value silently (a fraction to an integer), it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
) | {"BIGNUM"}
_MOMENTS = ("TIMESTAMP", "DATE")
_INTEGER_SOURCES = ("smallint", "integer", "bigint")


def from_text(text: str, type_name: str, source: str) -> str:
    """SQL that makes a text (an expression) a value of a column; ``source``: the source column's type."""
    kind = type_name.upper()
    if kind.endswith("]"):
        return f"CAST(CAST({text} AS JSON) AS {type_name})"
    if kind == "VARCHAR":
        return text
    if kind == "BLOB":
        return f"CASE WHEN starts_with({text}, '\\x') THEN unhex(substr({text}, 3)) ELSE encode({text}) END"
    if kind.startswith(_MOMENTS):
        # 0044-03-15 10:00:00 BC
        early = f"regexp_replace({text}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2')"
        return f"CAST(CASE WHEN ends_with({text}, ' BC') THEN {early} ELSE {text} END AS {type_name})"
    if kind == "INTERVAL":
        # -1 years +2 mons: each part has its own sign
        return f"CAST(replace({text}, '+', '') AS INTERVAL)"
    if kind in _INTEGERS and not source.lower().startswith(_INTEGER_SOURCES):
        refusal = f"error('invalid input for type {kind}: \"' || {text} || '\"')"
        return f"CASE WHEN contains({text}, '.') THEN {refusal} ELSE CAST({text} AS {type_name}) END"
    return f"CAST({text} AS {type_name})"


def to_text(column: str, type_name: str) -> str:
    """SQL of a column's value as the source would write it."""
    kind = type_name.upper()
    if kind == "BOOLEAN":
        return f"CASE WHEN {column} THEN 't' WHEN NOT {column} THEN 'f' END"
    if kind == "BLOB":
        return f"'\\x' || lower(hex({column}))"
    return f"CAST({column} AS VARCHAR)"


def is_array(type_name: str) -> bool:
    """Whether values are arrays, which come as ``{1,NULL,"a b"}``."""
    return type_name.endswith("]")


def array_as_json(text: str) -> str:
    """A PostgreSQL array literal as JSON; its elements stay texts.  Raises ValueError for what is none."""
    import json

    body = text[text.index("=") + 1 :] if text.startswith("[") and "=" in text else text
    parts: list[str] = []
    place = 0
    while place < len(body):
        letter = body[place]
        if letter in "{},":
            parts.append({"{": "[", "}": "]"}.get(letter, letter))
            place += 1
            continue
        element, place = _element(body, place)
        parts.append("null" if element is None else json.dumps(element))
    return "".join(parts)


def _element(body: str, place: int) -> tuple[str | None, int]:
    """One element from a place on, None for NULL, and the place behind it."""
    if body[place] != '"':
        end = min((found for mark in ",}" if (found := body.find(mark, place)) >= 0), default=len(body))
        bare = body[place:end]
        return (None if bare == "NULL" else bare), end
    letters: list[str] = []
    place += 1
    while body[place : place + 1] != '"':
        if place >= len(body):
            raise ValueError(f"an array whose quotes do not end: {body}")
        place += body[place] == "\\"
        letters.append(body[place : place + 1])
        place += 1
    return "".join(letters), place + 1


def arrays_as_json(values: Sequence[bytes | None]) -> list[bytes | None]:
    """A column of arrays."""
    return [None if value is None else array_as_json(value.decode()).encode() for value in values]
