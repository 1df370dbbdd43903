"""Writes a script that makes a target's rows equal to the source's. A person reads and runs it; ggshell never does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ggshell.connectors.postgres.compared_columns import ComparedColumn, PostgresColumns, postgres_columns
from ggshell.pipeline.compare.drill import Difference, DifferenceKind, Values
from ggshell.pipeline.compare.tables import ComparedTable
from ggshell.types import TableName, postgres_literal, quote, quote_table

ORIGIN = "ggshell_repair"
"""The replication origin of a script's session. Origins of Replicats begin with ``ggs_``, so no group has this one."""
HEAD = """-- Makes the rows of the target equal to those of the source, as COMPARE found them{when}.
-- Rows that were in flight are left out. A row that has changed in the target since then is not changed (UPDATE 0, DELETE 0).
-- Read the script before you run it; run it in the target:
--   psql -v ON_ERROR_STOP=1 -f this-file
{origin}BEGIN;
{setup}{quiet}SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, MDY'; SET LOCAL intervalstyle = 'postgres';
SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex';
"""
MARKED = f"""--
-- The changes carry the replication origin {ORIGIN}: an Extract of the target leaves them out, as it leaves out what a
-- Replicat writes. So they do not come back to the source where both databases replicate to each other. The role needs EXECUTE
-- on the functions pg_replication_origin_create, _oid, _session_setup, _session_reset and _drop; without it nothing changes.
-- To replicate the changes from the target to other databases, write the script with REPAIR file REPLICATE.
SELECT pg_replication_origin_create('{ORIGIN}') WHERE pg_replication_origin_oid('{ORIGIN}') IS NULL;
"""
CAPTURED = """--
-- The changes carry no replication origin: an Extract of the target captures them, and they are replicated like any others,
-- to the source as well where both databases replicate to each other. Triggers fire, as for any application.
"""
QUIET = """-- Triggers do not fire, and foreign keys (triggers too) are not checked and do not cascade: the rows become those of
-- the source, whose references are right. Compare all tables that refer to each other.
DO $ggshell$ BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'triggers will fire and foreign keys are checked: % may not set session_replication_role', current_user
        USING HINT = 'GRANT SET ON PARAMETER session_replication_role (PostgreSQL 15 or later), or run it as a superuser';
END $ggshell$;
"""
SETUP = f"SELECT pg_replication_origin_session_setup('{ORIGIN}');\n"
TAIL = "COMMIT;\n"
UNMARK = f"SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('{ORIGIN}');\n"


def script(tables: Iterable[ComparedTable], when: str = "", *, replicated: bool = False) -> str:
    """The whole script: deletions first, then changes and insertions.

    Unless the changes are to be ``replicated``, its session is marked so that no Extract captures them, and triggers do
    not fire if its role may disable them.
    """
    compared = [(each.target, postgres_columns(each.columns), each.differences) for each in tables]
    lines = [
        line
        for kinds in ((DifferenceKind.EXTRA,), (DifferenceKind.CHANGED, DifferenceKind.MISSING))
        for table, shape, found in compared
        for line in _statements(table, shape, [each for each in found if not each.in_flight and each.kind in kinds])
    ]
    origin, setup, quiet, unmark = (CAPTURED, "", "", "") if replicated else (MARKED, SETUP, QUIET, UNMARK)
    head = HEAD.format(when=f" at {when}" if when else "", origin=origin, setup=setup, quiet=quiet)
    return "".join([head, *(f"{line}\n" for line in lines), TAIL, unmark])


def _statements(table: TableName, shape: PostgresColumns, found: Iterable[Difference]) -> Iterator[str]:
    name = quote_table(table)
    for each in found:
        if each.source is None and each.target is not None:
            yield _deletion(name, shape, each.target, alone=len(each.key) == len(shape.key))
        elif each.source is not None and each.target is None:
            yield _insertion(name, shape, each.source)
        elif each.source is not None and each.target is not None:
            yield _update(name, shape, each.source, each.target)


def _deletion(name: str, shape: PostgresColumns, row: Values, *, alone: bool) -> str:
    if shape.key and alone:
        return f"DELETE FROM {name} WHERE {_equals(shape, row, (*shape.key, *_others(shape)))};"
    one = f"SELECT ctid FROM {name} WHERE {_equals(shape, row, shape.columns)} LIMIT 1"
    return f"DELETE FROM {name} WHERE ctid = ({one});"


def _insertion(name: str, shape: PostgresColumns, row: Values) -> str:
    columns = ", ".join(quote(column.name) for column in shape.columns)
    values = ", ".join(_literal(value, column) for value, column in zip(row, shape.columns, strict=True))
    always = " OVERRIDING SYSTEM VALUE" if any(column.identity == "a" for column in shape.columns) else ""
    return f"INSERT INTO {name} ({columns}){always} VALUES ({values});"


def _update(name: str, shape: PostgresColumns, source: Values, target: Values) -> str:
    changed = [column for value, before, column in zip(source, target, shape.columns, strict=True) if value != before]
    values = dict(zip(shape.names, source, strict=True))
    sets = ", ".join(f"{quote(column.name)} = {_literal(values[column.name], column)}" for column in changed)
    found = " AND ".join([_equals(shape, source, shape.key), _equals(shape, target, changed)])
    return f"UPDATE {name} SET {sets} WHERE {found};"


def _others(shape: PostgresColumns) -> tuple[ComparedColumn, ...]:
    """The columns that are not in the key."""
    return tuple(column for column in shape.columns if column.key is None)


def _equals(shape: PostgresColumns, row: Values, columns: Sequence[ComparedColumn]) -> str:
    values = dict(zip(shape.names, row, strict=True))
    return " AND ".join(_equal(column, values[column.name]) for column in columns) or "true"


def _equal(column: ComparedColumn, value: str | None) -> str:
    """The condition that a column has a value.

    A type outside of a key may have no equality operator, or an unusual one (two boxes are equal if their areas are),
    so texts are compared. Numbers are compared as numbers, because one number has many texts, and the target's may have
    more digits than the source's type.
    """
    name = quote(column.name)
    if value is None:
        return f"{name} IS NULL"
    if column.key is not None:
        return f"{name} = {_literal(value, column)}"
    if column.type.startswith("numeric") and not column.type.endswith("[]"):
        return f"{name} = {postgres_literal(value)}::numeric"
    return f'{name}::text COLLATE "C" = {postgres_literal(value)}'


def _literal(value: str | None, column: ComparedColumn) -> str:
    return "NULL" if value is None else f"{postgres_literal(value)}::{column.type}"
