"""TRAIL FIND: a transaction, or the whole life of a row, also when its key changes on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ggshell.spark.dialect import literal
from ggshell.spark.pushdown import Condition
from ggshell.spark.questions.span import Part, Span
from ggshell.spark.questions.trails import Trails
from ggshell.spark.views import Answer
from ggshell.types import TableName

Key = tuple[str | None, ...]
_COLUMNS: Final = "csn, xid, commit_ts, trail, seqno, rba, op, owner, table, before, columns"
_ORDER: Final = "trail, seqno, rba"
_TRUNCATE: Final = 100
_DELETE: Final = 3


def find_transaction(trails: Trails, *, xid: str = "", csn: str = "") -> Answer:
    """Every record of the transactions with an id, or of the one with a CSN (as printed)."""
    column, value = ("xid", xid) if xid else ("csn", csn)
    sql = f"SELECT {_COLUMNS} FROM trail WHERE {column} = {literal(value)} ORDER BY {_ORDER}"
    return trails.ask("TRAIL FIND TRANSACTION", sql, [Condition(column, "=", value)])


def find_row(trails: Trails, table: TableName, names: tuple[str, ...], key: Key) -> Answer:
    """The life of the row that has a key at any time: from its insert, under all keys that it had, to its deletion.

    Where a key was used again after a deletion, each of these rows' lives.  ``names`` are the key's columns.
    """
    answer = records_of(trails, table, names, {key})
    return answer._replace(rows=_life(answer, names, key))


def records_of(
    trails: Trails, table: TableName, names: tuple[str, ...], wanted: Iterable[Key], limit: Part | None = None
) -> Answer:
    """All records that name one of these keys, or one that a row with such a key had before or got later, and truncates.

    ``limit``: only these records of the trail.
    """
    keys = set(wanted)
    while True:
        answer = _records(trails, table, names, keys, limit)
        found = {each for row in answer.rows for each in _keys(answer, row, names)} - keys
        if not found:
            return answer
        keys |= found


def _records(
    trails: Trails, table: TableName, names: tuple[str, ...], keys: Iterable[Key], limit: Part | None
) -> Answer:
    span = Span(table=table)
    said = " OR ".join(
        f"({_equal('columns', names, key)}) OR ({_equal('before', names, key)})" for key in sorted(keys, key=repr)
    )
    limited = f" AND {limit.sql}" if limit is not None else ""
    sql = (
        f"SELECT {_COLUMNS}, io_type FROM trail{span.where}{limited}"
        f" AND (io_type = {_TRUNCATE} OR {said}) ORDER BY {_ORDER}"
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
    """The key in an image; None when it does not hold all of it."""
    if not values or any(name not in values for name in names):
        return None
    return tuple(values[name] for name in names)


def _keys(answer: Answer, row: tuple[Any, ...], names: tuple[str, ...]) -> list[Key]:
    place = answer.columns.index
    found = (key_in(row[place("before")], names), key_in(row[place("columns")], names))
    return [key for key in found if key is not None]


def _life(answer: Answer, names: tuple[str, ...], wanted: Key) -> list[tuple[Any, ...]]:
    """Of records about many keys those of the rows that had the wanted one; each row is followed by its records.

    A trail knows a row by its key only, so a row begins where its key is not in use, and ends with its deletion.
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
