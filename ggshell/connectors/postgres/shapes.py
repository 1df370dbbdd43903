"""The shape of target tables: the definition that statements were prepared for, checked in every transaction.

A prepared statement keeps the types of its parameters. After the type of a column has changed, the server would convert
values through the old type, without an error. Therefore every transaction ends with a check of the tables that it has
changed. The transaction holds locks on them, so they cannot change before the commit. If a table differs from the
definition that the statements were prepared for, the check fails and the transaction is rolled back.

A shape is the table's OID and the xmin of each column's row in the catalog. Any change produces a new shape, and an old
one never returns. Therefore a later successful check also proves what was true before: a refusal is accepted as real
when the shapes are still the same after it.

Reading the catalog in every transaction costs more than a row. Therefore the check of a transaction with prepared
statements is itself a prepared statement that returns the columns of the table, as NULLs. When the table has changed,
the server analyzes that statement again. It refuses the statement if the types or names of the columns differ from
those at preparation, and the statement divides by zero if the name belongs to another table. The shape is checked right
after the statement was prepared. Since an old shape never returns, it was already the same at preparation. For a table with
generated columns, the shape is checked in every transaction, because such columns keep their types when they become
ordinary ones.

A change that is reverted between two checks does no harm. While a transaction holds its lock on a table, no column can
change. A schema or table can be renamed and renamed back in that time, while another one has its name; the rows are still in
the table that was described, which has its name again when they are committed. If a type is changed and changed back
between two transactions, it is again the type that the statements were prepared for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.connectors.postgres.row_formats import array_literal
from ggshell.connectors.postgres.session import execute
from ggshell.errors import TargetChangedError
from ggshell.pipeline.apply.target import Refusal
from ggshell.types import postgres_literal

if TYPE_CHECKING:
    import psycopg


class TableShape(NamedTuple):
    """The shape of a table; ``typed``: the types and names of its columns are all that statements depend on."""

    text: str
    typed: bool = False

    @property
    def relation(self) -> str:
        """The table's OID."""
        return self.text.partition("{")[0]


Shapes = Mapping[str, TableShape]
"""Shapes by the tables' names as SQL."""

TABLE_CHANGED = "GGS02"
"""The SQLSTATE of the refusal that a failed check causes."""

_REFUSAL = Refusal("a target table has changed", TABLE_CHANGED)
_CHANGED = """SELECT w.name FROM unnest({names}::text[], {shapes}::text[]) AS w(name, shape) WHERE w.shape IS DISTINCT FROM (
  SELECT concat(to_regclass(w.name)::oid, array_agg(a.xmin ORDER BY a.attnum)) FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = to_regclass(w.name) AND a.attnum > 0 AND NOT a.attisdropped)"""
_CHECK = f"SELECT 1 / (NOT EXISTS ({_CHANGED}))::int"
# For one table: it has as many columns as before, and none with another xmin. This costs half as much.
_SAME = """(SELECT count(*) = {count} AND coalesce(bool_and(a.xmin IN ({versions})), true) FROM pg_catalog.pg_attribute a
 WHERE a.attrelid = {relation} AND a.attnum > 0 AND NOT a.attisdropped AND to_regclass({name}) = {relation})"""


def shape_of(relation: int, versions: Sequence[str]) -> str:
    """Build the shape of a table from its OID and the xmins of its columns' catalog rows, in order."""
    return f"{relation}{{{','.join(versions)}}}" if versions else str(relation)


def checks(shapes: Shapes, *, prepared: bool) -> list[ApplyStep]:
    """Steps that fail unless the tables have these shapes: one per table if ``prepared``, otherwise one for all."""
    if not shapes:
        return []
    if prepared:
        return [_check_of_one(name, shape) for name, shape in shapes.items()]
    names, wanted = (
        postgres_literal(array_literal([value.encode() for value in values]).decode())
        for values in (list(shapes), [shape.text for shape in shapes.values()])
    )
    return [ApplyStep(_CHECK.format(names=names, shapes=wanted), on_failure=_REFUSAL)]


def _check_of_one(name: str, shape: TableShape) -> ApplyStep:
    if shape.typed:
        return ApplyStep(f"SELECT {columns(name, shape)}", (), on_failure=_REFUSAL, opening=opening(name, shape))
    return ApplyStep(f"SELECT 1 / {is_same(name, shape)}::int", (), on_failure=_REFUSAL)


def only_typed(shapes: Shapes) -> tuple[str, TableShape] | None:
    """The only table that was touched, if its check can be part of another prepared statement."""
    if len(shapes) != 1:
        return None
    ((name, shape),) = shapes.items()
    return (name, shape) if shape.typed else None


@lru_cache(maxsize=4096)
def columns(name: str, shape: TableShape) -> str:
    """What a prepared statement returns in order to fail when the table changes. It must open with ``opening``."""
    return f"1 / ({postgres_literal(name)}::pg_catalog.regclass = {shape.relation})::int, (NULL::{name}).*"


def opening(name: str, shape: TableShape) -> ApplyStep:
    """The step that must succeed right after a statement with ``columns`` was prepared."""
    return ApplyStep(f"SELECT 1 / {is_same(name, shape)}::int", on_failure=_REFUSAL)


@lru_cache(maxsize=4096)
def is_same(name: str, shape: TableShape) -> str:
    """SQL for the condition that a table has a shape."""
    relation, _, versions = shape.text.rstrip("}").partition("{")
    found = versions.split(",") if versions else []
    distinct = ", ".join(f"'{version}'" for version in dict.fromkeys(found)) or "NULL"
    return _SAME.format(count=len(found), versions=distinct, relation=relation, name=postgres_literal(name))


def require_same(connection: psycopg.Connection[Any], shapes: Shapes) -> None:
    """Raise TargetChangedError with the names of the changed tables, unless all tables have these shapes."""
    text = _CHANGED.format(names="%s", shapes="%s")
    found = execute(connection, text, [list(shapes), [shape.text for shape in shapes.values()]]) if shapes else []
    if found:
        raise changed(", ".join(sorted(name for (name,) in found)))


def changed(tables: str) -> TargetChangedError:
    """The error that causes the tables to be described again."""
    return TargetChangedError(
        f"the definition of target table {tables} has changed: it is read again, and uncommitted changes are applied again"
    )
