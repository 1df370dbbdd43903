"""A script that makes a target's rows the source's: for a person to read and to run, never run by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ggshell.compare.drill import Difference, Kind
from ggshell.compare.side import Values
from ggshell.databases.postgres.compare_side import Column, Shape
from ggshell.databases.postgres.describe import quote, quote_table
from ggshell.types import TableName

HEAD = """-- Makes the rows of the target those of the source, as COMPARE found them{when}.
-- Rows that were in flight are left out.  Read it before you run it; run it in the target:
--   psql -v ON_ERROR_STOP=1 -f this-file
-- Where foreign keys or triggers are in the way:  SET session_replication_role = replica;
BEGIN;
"""
TAIL = "COMMIT;\n"


def script(tables: Iterable[tuple[TableName, Shape, Sequence[Difference]]], when: str = "") -> str:
    """The whole script: deletions first, then changes and insertions."""
    told = list(tables)
    lines = [
        line
        for kinds in ((Kind.EXTRA,), (Kind.CHANGED, Kind.MISSING))
        for table, shape, found in told
        for line in _statements(table, shape, [each for each in found if not each.in_flight and each.kind in kinds])
    ]
    return "".join([HEAD.format(when=f" at {when}" if when else ""), *(f"{line}\n" for line in lines), TAIL])


def _statements(table: TableName, shape: Shape, found: Iterable[Difference]) -> Iterator[str]:
    name = quote_table(table)
    for each in found:
        if each.source is None and each.target is not None:
            yield _deletion(name, shape, each.target, alone=len(each.key) == len(shape.key))
        elif each.source is not None and each.target is None:
            yield _insertion(name, shape, each.source)
        elif each.source is not None and each.target is not None:
            yield _update(name, shape, each.source, each.target)


def _deletion(name: str, shape: Shape, row: Values, *, alone: bool) -> str:
    if shape.key and alone:
        return f"DELETE FROM {name} WHERE {_equals(shape, row, shape.key)};"
    one = f"SELECT ctid FROM {name} WHERE {_equals(shape, row, shape.columns)} LIMIT 1"
    return f"DELETE FROM {name} WHERE ctid = ({one});"


def _insertion(name: str, shape: Shape, row: Values) -> str:
    columns = ", ".join(quote(column.name) for column in shape.columns)
    values = ", ".join(_literal(value, column) for value, column in zip(row, shape.columns, strict=True))
    always = " OVERRIDING SYSTEM VALUE" if any(column.identity == "a" for column in shape.columns) else ""
    return f"INSERT INTO {name} ({columns}){always} VALUES ({values});"


def _update(name: str, shape: Shape, source: Values, target: Values) -> str:
    changed = [
        f"{quote(column.name)} = {_literal(value, column)}"
        for value, before, column in zip(source, target, shape.columns, strict=True)
        if value != before
    ]
    return f"UPDATE {name} SET {', '.join(changed)} WHERE {_equals(shape, source, shape.key)};"


def _equals(shape: Shape, row: Values, columns: Sequence[Column]) -> str:
    values = dict(zip(shape.names, row, strict=True))
    return " AND ".join(
        f"{quote(column.name)} IS NULL"
        if values[column.name] is None
        else f"{quote(column.name)} = {_literal(values[column.name], column)}"
        for column in columns
    )


def _literal(value: str | None, column: Column) -> str:
    if value is None:
        return "NULL"
    text = "'" + value.replace("'", "''") + "'"
    return f"{text}::{column.type}"
