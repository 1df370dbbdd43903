"""Column expressions as a small frozen tree: what FILTER, WHERE, COLMAP and the arguments of @functions mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

Span = tuple[int, int]
"""Where something begins and ends in the statement, from 0."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number, as exact as it was written."""

    value: Decimal
    span: Span


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or what looks like one: a bare keyword of a function, a result ``query.column``.

    ``qualifier`` is what stands before the last dot: BEFORE and AFTER in upper case, a query's name.
    """

    name: str
    quoted: bool
    qualifier: str
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; ``name`` in upper case without the ``@``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``-``, ``+`` or NOT before something."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Two things and what is done with them: arithmetic, a comparison, AND, OR."""

    operator: str
    left: Expression
    right: Expression
    span: Span


Expression: TypeAlias = Literal | Number | Column | Call | Unary | Binary


def columns_of(tree: Expression) -> Iterable[Column]:
    """Every column of a tree, in order."""
    if isinstance(tree, Column):
        yield tree
    elif isinstance(tree, Unary):
        yield from columns_of(tree.operand)
    elif isinstance(tree, Binary):
        yield from columns_of(tree.left)
        yield from columns_of(tree.right)
    elif isinstance(tree, Call):
        for each in tree.arguments:
            yield from columns_of(each)
