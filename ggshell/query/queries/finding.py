"""TRAIL FIND: a transaction, or the full history of a row, including key changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ggshell.query.dialect import literal
from ggshell.query.pushdown import Condition
from ggshell.query.queries.trails import QueriedTrails, SpanCondition, TrailSpan
from ggshell.query.views import QueryAnswer
from ggshell.record.ddl import ddl_objects
from ggshell.record.name_patterns import matches
from ggshell.types import TableName

Key = tuple[str | None, ...]
_COLUMNS: Final = "csn, xid, commit_ts, trail, seqno, rba, op, owner, table, before, columns"
_PAIRS: Final = {
    "TAG": "tag",
    "TYPE": "object_type",
    "OWNER": "owner",
    "NAME": "name",
    "ROLE": "role",
    "TEXT": "statement",
    "OBJECTS": "objects",
}
"""The pairs of a DDL record that TRAIL FIND DDL returns, with their columns; it does not return the objects."""
_ORDER: Final = "trail, seqno, rba"
_TRUNCATE: Final = 100
_DELETE: Final = 3
_DDL: Final = 160


def find_transaction(trails: QueriedTrails, *, xid: str = "", csn: str = "") -> QueryAnswer:
    """Every record of the transactions with an id, or of the transaction with a CSN (as printed)."""
    column, value = ("xid", xid) if xid else ("csn", csn)
    sql = f"SELECT {_COLUMNS} FROM trail WHERE {column} = {literal(value)} ORDER BY {_ORDER}"
    return trails.ask("TRAIL FIND TRANSACTION", sql, [Condition(column, "=", value)])


def find_ddl(trails: QueriedTrails, pattern: str) -> QueryAnswer:
    """The DDL statements on objects whose name matches a pattern (``schema.name`` with wildcards), or on their tables."""
    pairs = [f"element_at(columns, {literal(key)}) AS {name}" for key, name in _PAIRS.items()]
    sql = f"""
        SELECT csn, xid, commit_ts, trail, seqno, rba, {", ".join(pairs)}
          FROM trail WHERE io_type = {_DDL} ORDER BY {_ORDER}"""
    answer = trails.ask("TRAIL FIND DDL", sql, [Condition("io_type", "=", _DDL)])
    place = answer.columns.index("objects")
    rows = [row[:place] + row[place + 1 :] for row in answer.rows if _concerns(row[place], pattern)]
    return answer._replace(columns=answer.columns[:place] + answer.columns[place + 1 :], rows=rows)


def _concerns(objects: str | None, pattern: str) -> bool:
    """Whether one of a statement's objects, or the table it belongs to, matches a pattern."""
    names = (name for each in ddl_objects(objects or "") for name in (each.name, each.table) if name is not None)
    return any(matches(pattern, name) for name in names)


def find_row(trails: QueriedTrails, table: TableName, names: tuple[str, ...], key: Key) -> QueryAnswer:
    """The history of the row that has a key at any time: from its insert, under all its keys, to its delete.

    If a key was reused after a delete, the history of every such row. ``names`` are the key's columns.
    """
    answer = records_of(trails, table, names, {key})
    return answer._replace(rows=_life(answer, names, key))


def records_of(
    trails: QueriedTrails,
    table: TableName,
    names: tuple[str, ...],
    wanted: Iterable[Key],
    limit: SpanCondition | None = None,
) -> QueryAnswer:
    """All records with one of these keys, or with an earlier or later key of the same row, and truncates.

    ``limit`` restricts the records of the trail.
    """
    keys = set(wanted)
    while True:
        answer = _records(trails, table, names, keys, limit)
        found = {each for row in answer.rows for each in _keys(answer, row, names)} - keys
        if not found:
            return answer
        keys |= found


def _records(
    trails: QueriedTrails, table: TableName, names: tuple[str, ...], keys: Iterable[Key], limit: SpanCondition | None
) -> QueryAnswer:
    span = TrailSpan(table=table)
    said = " OR ".join(
        f"({_equal('columns', names, key)}) OR ({_equal('before', names, key)})" for key in sorted(keys, key=repr)
    )
    limited = f" AND {limit.sql}" if limit is not None else ""
    sql = (
        f"SELECT {_COLUMNS}, io_type FROM trail{span.where}{limited}"
        f" AND io_type <> {_DDL} AND (io_type = {_TRUNCATE} OR {said}) ORDER BY {_ORDER}"
    )
    return trails.ask("TRAIL FIND TABLE", sql, span.conditions)


def _equal(side: str, names: tuple[str, ...], key: Key) -> str:
    parts = []
    for name, value in zip(names, key, strict=True):
        element = f"element_at({side}, {literal(name)})"
        parts.append(
            f"map_contains_key({side}, {literal(name)}) AND {element} IS NULL"
            if value is None
            else f"{element} = {literal(value)}"
        )
    return " AND ".join(parts)


def key_in(values: Mapping[str, str | None] | None, names: tuple[str, ...]) -> Key | None:
    """The key in an image; None if the image does not contain all of it."""
    if not values or any(name not in values for name in names):
        return None
    return tuple(values[name] for name in names)


def _keys(answer: QueryAnswer, row: tuple[Any, ...], names: tuple[str, ...]) -> list[Key]:
    place = answer.columns.index
    found = (key_in(row[place("before")], names), key_in(row[place("columns")], names))
    return [key for key in found if key is not None]


def _life(answer: QueryAnswer, names: tuple[str, ...], wanted: Key) -> list[tuple[Any, ...]]:
    """From records of many keys, select the histories of the rows that had the wanted key.

    A trail identifies a row only by its key, so a row begins where its key is not in use, and ends with its delete.
    """
    place = answer.columns.index
    lives: list[list[tuple[Any, ...]]] = []
    hit: set[int] = set()
    living: dict[tuple[str, Key], int] = {}
    for row in answer.rows:
        trail, kind = str(row[place("trail")]), row[place("io_type")]
        if kind == _TRUNCATE:
            for known in [each for each in living if each[0] == trail]:
                lives[living.pop(known)].append(row)
            continue
        before, after = key_in(row[place("before")], names), key_in(row[place("columns")], names)
        earlier = before or after
        if earlier is None:
            continue
        number = living.pop((trail, earlier), len(lives))
        if number == len(lives):
            lives.append([])
        lives[number].append(row)
        if wanted in (before, after):
            hit.add(number)
        if kind != _DELETE:
            living[trail, after or earlier] = number
    rows = [row for number in hit for row in lives[number]]
    return sorted(rows, key=lambda row: (row[place("trail")], row[place("seqno")], row[place("rba")]))
