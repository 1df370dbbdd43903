"""FILTER and WHERE: which rows pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.language.clauses import FilterClause
from ggshell.language.expressions import Binary, Call, ColumnReference, Expression, Unary
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import truth
from ggshell.record.operation import NO_OPERATIONS, OPERATIONS, IoType

_OF_ROWS = frozenset({"RANGE", "TOKEN"})
"""Functions that read a row, even if the condition names no column."""


class _Condition(NamedTuple):
    """A compiled condition. ``only``: the operation types it applies to, None for all; ``error``: RAISEERROR.

    ``of_rows``: it reads a row, so that it says nothing about a TRUNCATE.
    """

    node: Node
    only: frozenset[int] | None
    error: int | None
    of_rows: bool


class Conditions:
    """The conditions of one statement for one table, evaluated in the order WHERE, FILTER, FILTER …

    A condition that is NULL, missing or invalid counts as false. A TRUNCATE has no row: only conditions on other facts, such
    as the CSN of its transaction, apply to it.
    """

    def __init__(self, clauses: Clauses, scope: Scope) -> None:
        found: list[tuple[Expression, frozenset[int] | None, int | None]] = []
        if clauses.where is not None:
            found.append((clauses.where.condition, None, None))
        found += [(each.condition, _operations(each), each.error) for each in clauses.filters]
        self._conditions: Sequence[_Condition] = [
            _Condition(scope.compile(tree), only, error, _reads_rows(tree, scope)) for tree, only, error in found
        ]

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def passing(self, rows: Rows) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """The indexes of the rows that pass, and (index, number) of the rows for which RAISEERROR applies."""
        left = np.arange(len(rows))
        raised: list[tuple[int, int]] = []
        for node, only, error, of_rows in self._conditions:
            if (only is not None and rows.io_type not in only) or (of_rows and rows.io_type == IoType.PURGE_DATA):
                continue
            asked = rows if len(left) == len(rows) else rows.take(left.tolist())
            passes = np.array([truth(value) is True for value in node.evaluate(asked)], dtype=np.bool_)
            if error is not None:
                raised += [(place, error) for place in left[~passes].tolist()]
            left = left[passes]
            if not len(left):
                break
        return left, raised


def _reads_rows(tree: Expression, scope: Scope) -> bool:
    """Whether a condition reads a column, the result of a query, or what else belongs to a row."""
    match tree:
        case ColumnReference():
            return bool(tree.qualifier) or scope.index(tree) is not None
        case Unary():
            return _reads_rows(tree.operand, scope)
        case Binary():
            return _reads_rows(tree.left, scope) or _reads_rows(tree.right, scope)
        case Call() if tree.name != "GETENV":  # whose arguments are texts
            return tree.name in _OF_ROWS or any(_reads_rows(each, scope) for each in tree.arguments)
        case _:
            return False


def _operations(clause: FilterClause) -> frozenset[int] | None:
    """The operation types that a FILTER applies to; None for all."""
    if not clause.on and not clause.ignore:
        return None
    wanted = clause.on or tuple(name.removesuffix("S") for name in OPERATIONS)
    named = [OPERATIONS[f"{name}S"] for name in wanted if name not in clause.ignore]
    return NO_OPERATIONS.union(*named)
