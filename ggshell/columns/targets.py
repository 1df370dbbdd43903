"""COLMAP worked out: which target column takes which source column as it is, and which ones are computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.columns.clauses import Clauses
from ggshell.columns.scope import Scope
from ggshell.record.definition import TableDefinition
from ggshell.syntax.clauses import Assignment
from ggshell.syntax.expression_tree import Column, Expression

_LENGTH = re.compile(r"\((\d+)\)")
_SIZED = re.compile(r"(?i)(character|char|varchar|bpchar|bit)\b")


class Plan(NamedTuple):
    """``plain``: for each source column index the target columns that take it as it is, by name; ``computed``: the others."""

    plain: dict[int, tuple[str, ...]]
    computed: tuple[tuple[str, Expression], ...]


def length_of(type_name: str) -> int | None:
    """The length of a type of characters as a catalog writes it; None where it has none."""
    match = _LENGTH.search(type_name) if _SIZED.match(type_name) else None
    return int(match[1]) if match else None


def plan_of(
    scope: Scope, clauses: Clauses, targets: Sequence[str], unknown: Callable[[Assignment], str | None]
) -> Plan:
    """Who takes what.

    ``targets``: the target's columns, as it spells them; ``unknown`` says what an assignment to any other means: a new column's
    name, or None where it must not be.  Raises StatementError.
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
            index = scope.index(Column(name, True, "", (0, 0))) if name not in taken else None
            if index is not None:
                plain.setdefault(index, []).append(name)
    return Plan({index: tuple(names) for index, names in plain.items()}, tuple(computed))


def source_column(scope: Scope, tree: Expression) -> int | None:
    """The source column that an expression is; None where it is anything else."""
    return scope.index(tree) if isinstance(tree, Column) and not tree.qualifier else None


def names_of(definition: TableDefinition) -> list[str]:
    return [column.name for column in definition.columns]
