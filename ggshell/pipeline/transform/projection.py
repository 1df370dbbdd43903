"""The clauses of TABLE for rows on their way to a trail: the definition of the table in the trail, and its program.

There is no target catalog to consult, so a column that COLMAP creates is a text (a number, if only a number is possible), or
has the type of the source column whose name it takes. Unchanged columns come first, computed columns after them.
"""

from __future__ import annotations

from dataclasses import replace

from ggshell.errors import StatementError
from ggshell.language.clauses import Assignment
from ggshell.language.expressions import ColumnReference, Expression
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.conditions import Conditions
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.images import Appended
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.program import Program
from ggshell.pipeline.transform.queries import Queries
from ggshell.pipeline.transform.targets import ColumnPlan, length_of, names_of, plan_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.families import family
from ggshell.record.operation import NO_OPERATIONS
from ggshell.types import TableName

_HERE = (0, 0)


def projected(
    source: TableDefinition,
    name: TableName,
    clauses: Clauses,
    environment: Environment,
    ignored: frozenset[int] = NO_OPERATIONS,
) -> Program:
    """Compile one TABLE for one source table. ``name`` is the table's name in the trail. Raises StatementError."""
    queries = frozenset(query.name.lower() for query in clauses.queries)
    scope = Scope(source, environment, MAKERS, queries, source.identity if source.key else (), source=clauses.source)
    plan = _plan(scope, clauses)
    kept, columns, computed = _kept(source, plan)
    appended = []
    for wanted, tree in computed:
        column, node = _computed(scope, wanted, tree)
        appended.append(Appended(len(columns), node, binary=family(column.type_name) == "bytes"))
        columns.append(column)
    whole = kept == {index: (index,) for index in range(len(source.columns))}
    key = _key(source, kept, columns, clauses)
    return Program(
        definition=TableDefinition(name, tuple(columns), key),
        conditions=Conditions(clauses, scope),
        queries=Queries(clauses, scope, environment.queries) if clauses.queries else None,
        appended=tuple(appended),
        key=frozenset(key),
        kept=None if whole else kept,
        ignored=ignored,
    )


def _plan(scope: Scope, clauses: Clauses) -> ColumnPlan:
    """The columns that remain, by COLS or COLSEXCEPT, and their mapping by COLMAP."""
    names = names_of(scope.definition)
    if clauses.columns is not None:
        chosen = {_index(scope, name, clauses) for name in clauses.columns}
        names = [name for index, name in enumerate(names) if index in chosen]
    left_out = {_index(scope, name, clauses) for name in clauses.without}
    left_out_names = {scope.definition.columns[index].name for index in left_out}
    return plan_of(scope, clauses, [name for name in names if name not in left_out_names], _new_name)


def _index(scope: Scope, name: str, clauses: Clauses) -> int:
    index = scope.index(ColumnReference(name, True, "", _HERE))
    if index is None:
        raise StatementError(
            f"table {scope.definition.name} has no column {name}",
            where=clauses.place,
            hint="correct COLS or COLSEXCEPT",
        )
    return index


def _new_name(assignment: Assignment) -> str:
    return assignment.name if assignment.quoted else assignment.name.lower()


def _kept(
    source: TableDefinition, plan: ColumnPlan
) -> tuple[dict[int, tuple[int, ...]], list[Column], list[tuple[str, Expression]]]:
    """The new indexes of each source column that is copied, the columns so far, and the columns to compute."""
    kept: dict[int, tuple[int, ...]] = {}
    columns: list[Column] = []
    for index in sorted(plan.plain):
        kept[index] = tuple(range(len(columns), len(columns) + len(plan.plain[index])))
        columns += [source.columns[index]._replace(name=name) for name in plan.plain[index]]
    return kept, columns, list(plan.computed)


def _computed(scope: Scope, name: str, tree: Expression) -> tuple[Column, Node]:
    index = scope.index(ColumnReference(name, True, "", _HERE))
    before = scope.definition.columns[index] if index is not None else None
    length, kind = (length_of(before.type_name), family(before.type_name)) if before is not None else (None, None)
    node = replace(scope, length=length, family=kind).compile(tree)
    if before is not None:
        return before._replace(name=name), node
    return Column(name, "numeric" if node.numeric else "text"), node


def _key(
    source: TableDefinition, kept: dict[int, tuple[int, ...]], columns: list[Column], clauses: Clauses
) -> tuple[int, ...]:
    """The key's new indexes: copied columns, or computed ones with the same name."""
    names = [column.name for column in columns]
    key: list[int] = []
    for index in source.key:
        name = source.columns[index].name
        if index not in kept and name not in names:
            raise StatementError(
                f"{name} belongs to the key of {source.name} and must not be left out",
                where=clauses.place,
                hint="rows could not be found at the target",
            )
        key.append(kept[index][0] if index in kept else names.index(name))
    return tuple(key)
