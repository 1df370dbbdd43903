"""Nodes, the compiled parts of expressions: each computes a column of values for some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple

from ggshell.pipeline.transform.rows import Rows, Side
from ggshell.pipeline.transform.values import State, Value, clean, to_bytes, to_number, to_text, worst
from ggshell.record.families import family

Evaluate = Callable[[Rows], list[Value]]


class ColumnPlace(NamedTuple):
    """A column of the source: its index, its image, and its type family."""

    column: int
    side: Side
    family: str | None


@dataclass(frozen=True, slots=True)
class Node:
    """A compiled expression. ``evaluate`` returns one value per row.

    ``constant``: the value if it is the same for all rows; ``textual``: a literal text or a character column, compared as
    text; ``literal``: written as a literal text; ``place``: set for a plain column; ``numeric``: every value is a number or
    a state.
    """

    evaluate: Evaluate
    constant: Value | None = None
    textual: bool = False
    literal: bool = False
    place: ColumnPlace | None = None
    numeric: bool = False

    @property
    def plain(self) -> bool:
        """Whether evaluating it for more rows than needed is free."""
        return self.constant is not None or self.place is not None


def constant(value: Value, *, literal: bool = False) -> Node:
    return Node(lambda rows: [value] * len(rows), value, textual=literal, literal=literal)


def column(index: int, type_name: str, side: Side = Side.PLAIN) -> Node:
    """A column of the source. Its values are texts; a column of bytes gives bytes."""
    place = ColumnPlace(index, side, family(type_name))
    if place.family == "bytes":
        return Node(lambda rows: rows.octets(side, index), place=place)
    return Node(lambda rows: rows.texts(side, index), textual=place.family != "number", place=place)


def texts(node: Node) -> Node:
    """The node's values as texts."""
    if node.place is not None and node.place.family != "bytes":
        return node
    return node if isinstance(node.constant, str) else applied(to_text, node)


def numbers(node: Node) -> Node:
    """The node's values as numbers."""
    if node.numeric:
        return node
    if node.place is not None and node.place.family == "number":
        index, side, _ = node.place
        return Node(lambda rows: rows.numbers_of(side, index), place=node.place, numeric=True)
    return replace(applied(to_number, node), numeric=True)


def octets(node: Node) -> Node:
    """The node's values as bytes."""
    if node.place is not None and node.place.family != "bytes":
        index, side, _ = node.place
        return Node(lambda rows: list(rows.raw(side, index)), place=node.place)
    return applied(to_bytes, node)


def applied(function: Callable[..., Value], *nodes: Node) -> Node:
    """Apply a function row by row. A state among the arguments is the result; the function never receives one."""
    fixed = [node.constant for node in nodes]
    if None not in fixed:
        values: list[Any] = fixed
        return constant(worst(values) or function(*values))
    if len(nodes) == 1:
        return Node(_unary(function, nodes[0].evaluate))

    def evaluate(rows: Rows) -> list[Value]:
        columns = [node.evaluate(rows) if node.constant is None else None for node in nodes]
        usable = all(clean(found) for found in columns if found is not None)
        states = any(isinstance(value, State) for value in fixed)
        pairs = zip(columns, fixed, strict=True)
        arguments: list[Any] = [repeat(value) if found is None else found for found, value in pairs]
        if usable and not states:
            return list(map(function, *arguments))
        return [worst(each) or function(*each) for each in zip(*arguments, strict=False)]

    return Node(evaluate)


def _unary(function: Callable[..., Value], argument: Evaluate) -> Evaluate:
    def evaluate(rows: Rows) -> list[Value]:
        values = argument(rows)
        if clean(values):
            return list(map(function, values))
        return [value if isinstance(value, State) else function(value) for value in values]

    return evaluate
