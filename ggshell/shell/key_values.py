"""The values of a row's key as a statement writes them: ``(1, 'a b')``, ``(id = 1, name = 'a b')``."""

from __future__ import annotations

from ggshell.errors import UsageError
from ggshell.syntax.balanced import split_list


def key_values(body: str, columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """The columns and their values, in the table's order of ``columns``.  Raises UsageError unless each has exactly one."""
    parts = [part.strip() for part in split_list(body.strip()[1:-1]) if part.strip()]
    named: dict[str, str | None] = {}
    for place, part in enumerate(parts):
        name, equals, value = _parted(part)
        if not equals:
            name, value = columns[place] if place < len(columns) else part, part
        named[_spelled(name, columns)] = _value(value)
    if set(named) != set(columns) or len(parts) != len(columns):
        raise UsageError(f"the key is ({', '.join(columns)}), not {body}", hint=f"KEY ({columns[0]} = 1 …)")
    return columns, tuple(named[name] for name in columns)


def _parted(part: str) -> tuple[str, str, str]:
    """Column, ``=`` and value; both empty where there is no column before a value."""
    if part[0] == "'":
        return "", "", part
    if part[0] == '"' and '"' in part[1:]:
        end = part.index('"', 1) + 1
        rest = part[end:].lstrip()
        return (part[:end], "=", rest[1:].strip()) if rest.startswith("=") else ("", "", part)
    name, equals, value = part.partition("=")
    return name.strip(), equals, value.strip()


def _spelled(name: str, columns: tuple[str, ...]) -> str:
    """The column that a name means, without regard to case where none is spelled exactly so."""
    plain = name.strip('"')
    if plain in columns:
        return plain
    return next((column for column in columns if column.lower() == plain.lower()), plain)


def _value(text: str) -> str | None:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return None if text.upper() == "NULL" else text
