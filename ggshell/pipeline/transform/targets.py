"""Resolves COLMAP: which target columns copy a source column, and which ones are computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.language.clauses import Assignment
from ggshell.language.expressions import ColumnReference, Expression
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.compiler import Scope
from ggshell.record.definition import TableDefinition

_LENGTH = re.compile(r"\((\d+)\)")
_SIZED = re.compile(r"(?i)(character|char|varchar|bpchar|bit)\b")


class ColumnPlan(NamedTuple):
    """The resolved column map.

    ``plain``: for each source column index, the names of the target columns that copy it; ``computed``: the other columns.
    """

    plain: dict[int, tuple[str, ...]]
    computed: tuple[tuple[str, Expression], ...]


def length_of(type_name: str) -> int | None:
    """The length of a character type as a catalog writes it. None if it has none."""
    match = _LENGTH.search(type_name) if _SIZED.match(type_name) else None
    return int(match[1]) if match else None


def plan_of(
    scope: Scope, clauses: Clauses, targets: Sequence[str], unknown: Callable[[Assignment], str | None]
) -> ColumnPlan:
    """Resolve the column map. Raises StatementError.

    ``targets``: the target's columns in its own spelling; ``unknown`` handles an assignment to any other column: it returns
    the name of a new column, or None if that is not allowed.
    """
    by_name = {name: name for name in targets}
    lowered = [name.lower() for name in targets]
    plain: dict[int, list[str]] = {}
    computed: list[tuple[str, Expression]] = []
    taken: set[str] = set()
    column_map = clauses.column_map
    for assignment in column_map.assignments if column_map is not None else ():
        name = by_name.get(assignment.name)
        if name is None and lowered.count(assignment.name.lower()) == 1:
            name = targets[lowered.index(assignment.name.lower())]
        name = name or unknown(assignment)
        if name is None:
            scope.refuse(f"the target has no column {assignment.name}", assignment.source, "correct COLMAP")
        taken.add(name)
        index = source_column(scope, assignment.source)
        if index is None:
            computed.append((name, assignment.source))
        else:
            plain.setdefault(index, []).append(name)
    if column_map is None or column_map.use_defaults:
        for name in targets:
            index = scope.index(ColumnReference(name, True, "", (0, 0))) if name not in taken else None
            if index is not None:
                plain.setdefault(index, []).append(name)
    return ColumnPlan({index: tuple(names) for index, names in plain.items()}, tuple(computed))


def source_column(scope: Scope, tree: Expression) -> int | None:
    """The index of the source column if the expression is a plain column, else None."""
    return scope.index(tree) if isinstance(tree, ColumnReference) and not tree.qualifier else None


def names_of(definition: TableDefinition) -> list[str]:
    return [column.name for column in definition.columns]
