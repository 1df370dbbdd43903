"""Columns of many rows as PostgreSQL array literals, so that one statement changes them all."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.record.fields import Value


def array_literal(values: Sequence[Value]) -> bytes:
    """``text[]`` in text form: every value quoted, NULL bare."""
    if None not in values:
        joined = b'","'.join(values)  # type: ignore[arg-type]
        if b"\\" not in joined and joined.count(b'"') == 2 * (len(values) - 1):
            return b'{"' + joined + b'"}'
    return b"{" + b",".join(map(_element, values)) + b"}"


def _element(value: Value) -> bytes:
    if value is None:
        return b"NULL"
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def runs_of_distinct(keys: Sequence[object]) -> list[tuple[int, int]]:
    """Cut a sequence so that no part holds a key twice: (first, behind the last) of each part."""
    if len(set(keys)) == len(keys):
        return [(0, len(keys))]
    parts, first = [], 0
    seen: set[object] = set()
    for number, key in enumerate(keys):
        if key in seen:
            parts.append((first, number))
            first, seen = number, set()
        seen.add(key)
    parts.append((first, len(keys)))
    return parts
