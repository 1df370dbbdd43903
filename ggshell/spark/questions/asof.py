"""TRAIL ASOF: a table's rows as they were at a CSN or a time, rebuilt from what trails hold.

A row is what its last insert says, or the key update that brought it, and what later updates hold; deletions and truncates
end it.  A column that none of these holds (a large value that was not changed) is looked for under the row's earlier keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from ggshell.clock import to_datetime
from ggshell.errors import UsageError
from ggshell.record.definition import TableDefinition
from ggshell.spark.dialect import literal, quoted_name
from ggshell.spark.pushdown import Condition
from ggshell.spark.questions.finding import Key, key_in, records_of
from ggshell.spark.questions.span import Part, Span
from ggshell.spark.questions.trails import Trails

_INSERT: Final = 5
_DELETE: Final = 3
_TRUNCATE: Final = 100
_MOST_SEARCHED: Final = 100
"""Rows that are looked at for columns that only records under their earlier keys hold."""
PLACE: Final = (
    "concat(lpad(csn, 20, '0'), ' ', lpad(cast(seqno AS string), 9, '0'), ' ', lpad(cast(rba AS string), 15, '0'))"
)
"""Where a record stands, as a text that is ordered as records are: by CSN, also across trails."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Up to which transactions: those up to a CSN (as printed), or committed up to a time (microseconds since 1970)."""

    csn: str = ""
    time: int = 0

    @property
    def part(self) -> Part:
        if self.csn:
            sql = f"lpad(csn, 20, '0') <= {literal(self.csn.zfill(20))}"
            return Part(sql, Condition("csn", "<=", self.csn))
        return Part(f"commit_ts <= timestamp_micros({self.time})", Condition("commit_ts", "<=", to_datetime(self.time)))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """For the reader; decimal CSNs are no texts that are ordered as their numbers."""
        return (self.part.condition,) if self.time or "/" in self.csn else ()


class Rows(NamedTuple):
    """The table's rows as texts, in key order.  ``unknown``: (row, column) pairs of values that no record holds;
    ``older``: how many rows were there before the trails begin."""

    columns: tuple[str, ...]
    rows: list[tuple[str | None, ...]]
    unknown: tuple[tuple[int, str], ...]
    older: int
    engine: str
    seconds: float


def as_of(trails: Trails, definition: TableDefinition, moment: Moment) -> Rows:
    """The rows of a table after all transactions up to a moment.  Raises UsageError for a table without a key."""
    if not definition.key:
        raise UsageError(f"{definition.name} has no key, so its rows cannot be told apart", hint="KEYCOLS gives it one")
    columns = [column.name for column in definition.columns]
    names = tuple(columns[index] for index in definition.key)
    span = Span(table=definition.name)
    answer = trails.ask("TRAIL ASOF", _sql(columns, names, span, moment), (*span.conditions, *moment.conditions))
    found = [
        ([None if text is None else (True, text[1:] if text[0] == "V" else None) for text in row[1:]], row[0])
        for row in answer.rows
    ]
    older = sum(not fresh for _, fresh in found)
    rows = sorted((dict(zip(columns, row, strict=True)) for row, _ in found), key=lambda row: _order(row, names))
    unknown = _completed(trails, definition, names, rows, moment)
    values = [tuple(_value(row[name]) for name in columns) for row in rows]
    return Rows(tuple(columns), values, unknown, older, answer.engine, answer.seconds)


def _value(held: tuple[bool, str | None] | None) -> str | None:
    return held[1] if held is not None else None


def _sql(columns: Sequence[str], names: Sequence[str], span: Span, moment: Moment) -> str:
    """One row for each row of the table: whether its begin is known, and each column as ``V`` and its text, ``N`` for
    NULL, or NULL where no record holds it."""
    held = ", ".join(
        f"max_by(CASE WHEN element_at(held, {literal(name)}) IS NULL THEN 'N'"
        f" ELSE concat('V', element_at(held, {literal(name)})) END, place)"
        f" FILTER (WHERE place >= coalesce(since, '') AND map_contains_key(held, {literal(name)}))"
        f" AS {quoted_name(f'held_{number}')}"
        for number, name in enumerate(columns)
    )
    before, after = _key_text("before", names), _key_text("columns", names)
    moved = f"(map_contains_key(before, {literal(names[0])}) AND {before} <> {after})"
    return f"""
        WITH changes AS (SELECT {PLACE} AS place, io_type, before, columns FROM trail{span.where} AND {moment.part.sql}),
             cleared AS (SELECT coalesce(max(place), '') AS place FROM changes WHERE io_type = {_TRUNCATE}),
             events AS (
               SELECT place, {after} AS row_key, columns AS held, 0 AS gone,
                      CASE WHEN io_type = {_INSERT} OR {moved} THEN 1 ELSE 0 END AS fresh
                 FROM changes WHERE io_type NOT IN ({_DELETE}, {_TRUNCATE})
               UNION ALL
               SELECT place, {before} AS row_key, columns AS held, 1 AS gone, 1 AS fresh
                 FROM changes WHERE io_type = {_DELETE} OR (io_type <> {_TRUNCATE} AND {moved})),
             told AS (
               SELECT events.place AS place, row_key, held, gone, fresh,
                      max(CASE WHEN fresh = 1 THEN events.place END) OVER (PARTITION BY row_key) AS since
                 FROM events CROSS JOIN cleared WHERE events.place > cleared.place)
        SELECT max(CASE WHEN fresh > gone AND place = since THEN 1 ELSE 0 END) AS fresh, {held}
          FROM told GROUP BY row_key HAVING max_by(gone, place) = 0"""


def _key_text(side: str, names: Sequence[str]) -> str:
    return f"concat_ws(chr(1), {', '.join(f'element_at({side}, {literal(name)})' for name in names)})"


def _order(row: Mapping[str, tuple[bool, str | None] | None], names: Sequence[str]) -> list[tuple[int, Any]]:
    """Numbers as numbers, before texts."""
    found: list[tuple[int, Any]] = []
    for name in names:
        text = _value(row[name]) or ""
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("NaN")
        found.append((0, number) if number.is_finite() else (1, text))
    return found


def _completed(
    trails: Trails,
    definition: TableDefinition,
    names: tuple[str, ...],
    rows: list[dict[str, tuple[bool, str | None] | None]],
    moment: Moment,
) -> tuple[tuple[int, str], ...]:
    """Fill in what records under earlier keys of a row hold; what then is still unknown."""
    wanting = [(number, row) for number, row in enumerate(rows) if None in row.values()]
    keys = {number: tuple(_value(row[name]) for name in names) for number, row in wanting[:_MOST_SEARCHED]}
    states = _through_moves(trails, definition, names, set(keys.values()), moment) if keys else {}
    unknown: list[tuple[int, str]] = []
    for number, row in wanting:
        known = states.get(keys[number], {}) if number in keys else {}
        missing = [name for name, held in row.items() if held is None]
        row.update({name: (True, known[name]) for name in missing if name in known})
        unknown += [(number, name) for name in missing if row[name] is None]
    return tuple(unknown)


def _through_moves(
    trails: Trails, definition: TableDefinition, names: tuple[str, ...], keys: set[Key], moment: Moment
) -> dict[Key, dict[str, str | None]]:
    """Every column that records hold of rows, also of when they had other keys; by the keys that they have in the end."""
    answer = records_of(trails, definition.name, names, keys, moment.part)
    place = answer.columns.index
    states: dict[Key, dict[str, str | None]] = {}
    for row in sorted(
        answer.rows, key=lambda row: (row[place("csn")].zfill(20), row[place("seqno")], row[place("rba")])
    ):
        kind, after = row[place("io_type")], row[place("columns")] or {}
        if kind == _TRUNCATE:
            states.clear()
            continue
        old, new = key_in(row[place("before")], names), key_in(after, names)
        earlier = new if old is None else old
        state = states.pop(earlier, {}) if earlier is not None else {}
        if kind != _DELETE and new is not None:
            states[new] = dict(after) if kind == _INSERT else {**state, **after}
    return states
