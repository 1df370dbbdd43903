"""TRAIL ASOF: a table's rows at a CSN or a time, rebuilt from the contents of trails.

A row is built from its last insert, or the key update that created its key, and all later updates. Deletes and truncates end
it. A column that none of these contains (a large value that was not changed) is searched under the row's earlier keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from ggshell.clock import to_datetime
from ggshell.errors import UsageError
from ggshell.query.dialect import literal
from ggshell.query.pushdown import Condition
from ggshell.query.queries.finding import Key, key_in, records_of
from ggshell.query.queries.table_history import DDL, PLACE, TableAt, table_at
from ggshell.query.queries.trails import QueriedTrails, SpanCondition, TrailSpan
from ggshell.record.definition import TableDefinition
from ggshell.types import quote

_INSERT: Final = 5
_DELETE: Final = 3
_TRUNCATE: Final = 100
_MOST_SEARCHED: Final = 100
"""The most rows that are searched for columns recorded under their earlier keys."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The transactions to include: up to a CSN (as printed), or committed up to a time (microseconds since 1970)."""

    csn: str = ""
    time: int = 0

    @property
    def part(self) -> SpanCondition:
        if self.csn:
            sql = f"lpad(csn, 20, '0') <= {literal(self.csn.zfill(20))}"
            return SpanCondition(sql, Condition("csn", "<=", self.csn))
        return SpanCondition(
            f"commit_ts <= timestamp_micros({self.time})", Condition("commit_ts", "<=", to_datetime(self.time))
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions for the reader. Decimal CSNs do not sort as text, so they are not passed on."""
        return (self.part.condition,) if self.time or "/" in self.csn else ()


class TableRows(NamedTuple):
    """The table's rows as texts, in key order.

    ``unknown``: (row, column) pairs whose value is in no record; ``older``: the number of rows that existed before the
    trails begin.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str | None, ...]]
    unknown: tuple[tuple[int, str], ...]
    older: int
    engine: str
    seconds: float


def as_of(trails: QueriedTrails, definition: TableDefinition, moment: Moment) -> TableRows:
    """The rows of a table after all transactions up to a moment, with the columns that it had then.

    ``definition``: its newest definition. Raises UsageError for a table without a key.
    """
    table = table_at(trails, definition, moment.part)
    definition = table.definition
    if not definition.key:
        raise UsageError(
            f"{definition.name} has no key, so its rows cannot be identified", hint="use KEYCOLS to name key columns"
        )
    columns = [column.name for column in definition.columns]
    names = tuple(columns[index] for index in definition.key)
    span = TrailSpan(table=definition.name)
    answer = trails.ask("TRAIL ASOF", _sql(table, span, moment), (*span.conditions, *moment.conditions))
    found = [
        ([None if text is None else (True, text[1:] if text[0] == "V" else None) for text in row[1:]], row[0])
        for row in answer.rows
    ]
    older = sum(not fresh for _, fresh in found)
    rows = sorted((dict(zip(columns, row, strict=True)) for row, _ in found), key=lambda row: _order(row, names))
    unknown = _completed(trails, table, names, rows, moment)
    values = [tuple(_value(row[name]) for name in columns) for row in rows]
    return TableRows(tuple(columns), values, unknown, older, answer.engine, answer.seconds)


def _value(held: tuple[bool, str | None] | None) -> str | None:
    return held[1] if held is not None else None


def _sql(table: TableAt, span: TrailSpan, moment: Moment) -> str:
    """The query for one row per table row.

    It returns whether the row's begin is known, and each column as ``V`` followed by its text, ``N`` for NULL, or NULL if it
    is in no record.
    """
    every = [table.sql_name(number) for number in range(len(table.names))]
    key = [every[index] for index in table.definition.key]
    held = ", ".join(
        f"max_by(CASE WHEN element_at(held, {name}) IS NULL THEN 'N'"
        f" ELSE concat('V', element_at(held, {name})) END, place)"
        f" FILTER (WHERE place >= coalesce(since, '') AND map_contains_key(held, {name}))"
        f" AS {quote(f'held_{number}')}"
        for number, name in enumerate(every)
    )
    before, after = _key_text("before", key), _key_text("columns", key)
    moved = f"(map_contains_key(before, {key[0]}) AND {before} <> {after})"
    return f"""
        WITH changes AS (SELECT {PLACE} AS place, io_type, before, columns FROM trail{span.where} AND {moment.part.sql}
                               AND io_type <> {DDL}),
             cleared AS (SELECT greatest({literal(table.since)}, coalesce(max(place), '')) AS place
                           FROM changes WHERE io_type = {_TRUNCATE}),
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
    return f"concat_ws(chr(1), {', '.join(f'element_at({side}, {name})' for name in names)})"


def _order(row: Mapping[str, tuple[bool, str | None] | None], names: Sequence[str]) -> list[tuple[int, Any]]:
    """Sort numbers by value, before texts."""
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
    trails: QueriedTrails,
    table: TableAt,
    names: tuple[str, ...],
    rows: list[dict[str, tuple[bool, str | None] | None]],
    moment: Moment,
) -> tuple[tuple[int, str], ...]:
    """Fill in values recorded under earlier keys of a row. Returns what is still unknown."""
    wanting = [(number, row) for number, row in enumerate(rows) if None in row.values()]
    kept = all(
        len(table.names[index]) == 1 for index in table.definition.key
    )  # else rows are not found by the key's names
    keys = {number: tuple(_value(row[name]) for name in names) for number, row in wanting[:_MOST_SEARCHED] if kept}
    states = _through_moves(trails, table, names, set(keys.values()), moment) if keys else {}
    unknown: list[tuple[int, str]] = []
    for number, row in wanting:
        known = states.get(keys[number], {}) if number in keys else {}
        missing = [name for name, held in row.items() if held is None]
        row.update({name: (True, known[name]) for name in missing if name in known})
        unknown += [(number, name) for name in missing if row[name] is None]
    return tuple(unknown)


def _through_moves(
    trails: QueriedTrails, table: TableAt, names: tuple[str, ...], keys: set[Key], moment: Moment
) -> dict[Key, dict[str, str | None]]:
    """Every known column value of rows, including those recorded under earlier keys, by the rows' final keys."""
    answer = records_of(trails, table.definition.name, names, keys, moment.part)
    place = answer.columns.index
    states: dict[Key, dict[str, str | None]] = {}
    for row in sorted(
        answer.rows, key=lambda row: (row[place("csn")].zfill(20), row[place("seqno")], row[place("rba")])
    ):
        here = f"{row[place('csn')].zfill(20)} {row[place('seqno')]:09} {row[place('rba')]:015}"
        if here < table.since:
            continue
        kind, after = row[place("io_type")], table.renamed(row[place("columns")] or {}, here)
        if kind == _TRUNCATE:
            states.clear()
            continue
        old, new = key_in(row[place("before")], names), key_in(after, names)
        earlier = new if old is None else old
        state = states.pop(earlier, {}) if earlier is not None else {}
        if kind != _DELETE and new is not None:
            states[new] = dict(after) if kind == _INSERT else {**state, **after}
    return states
