"""Compiles expression trees to nodes, once per map and table, so that no tree is walked per row.

A ``Scope`` resolves the names in an expression: columns of a table, results of queries, facts of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation, Overflow
from typing import NoReturn

from ggshell.errors import StatementError
from ggshell.language.expressions import (
    ARITHMETIC,
    EXPRESSION_CODE,
    Binary,
    Call,
    ColumnReference,
    Expression,
    Literal,
    Unary,
)
from ggshell.language.suggest import did_you_mean
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.nodes import Node, applied
from ggshell.pipeline.transform.rows import Rows, Side
from ggshell.pipeline.transform.values import EXACT, QUOTIENT, Number, State, Value, number_in, order, truth
from ggshell.record.definition import TableDefinition

HEADER_COLUMNS = {
    "GGS_TRANS_TIMESTAMP": "COMMITTIMESTAMP",
    "GGS_TRANS_RBA": "LOGRBA",
    "GGS_OP_TYPE": "OPTYPE",
    "GGS_BEFORE_AFTER_IND": "BEFOREAFTERINDICATOR",
}
_SIDES = {"": Side.PLAIN, "BEFORE": Side.BEFORE, "AFTER": Side.AFTER}


@dataclass(frozen=True, slots=True)
class Scope:
    """The context that an expression is compiled in.

    ``functions``: the @functions by name; ``queries``: names whose results can be read; ``key``: the columns that identify a
    row (@RANGE); ``length`` and ``family``: those of the target column, if the expression is for one.
    """

    definition: TableDefinition
    environment: Environment
    functions: Mapping[str, Maker] = field(compare=False, repr=False)
    queries: frozenset[str] = frozenset()
    key: tuple[int, ...] = ()
    length: int | None = None
    family: str | None = None
    source: str = field(default="", compare=False)

    def compile(self, tree: Expression) -> Node:
        return compile_expression(tree, self)

    def call(self, call: Call) -> Node:
        """The node for a call. Raises StatementError if the function is not allowed here."""
        maker = self.functions.get(call.name)
        if maker is None:
            self.refuse(f"@{call.name} is not allowed here", call, page=call.name.lower())
        return maker(call, self)

    def all(self, trees: Iterable[Expression]) -> list[Node]:
        return [self.compile(tree) for tree in trees]

    def column(self, name: ColumnReference) -> Node:
        """The node for a name. Raises StatementError for an unknown name."""
        side = _SIDES.get(name.qualifier.upper())
        if side is None:
            return self.result(name)
        return self._of_side(name, side)

    def _of_side(self, name: ColumnReference, side: Side) -> Node:
        index = self.index(name)
        if index is not None:
            return nodes.column(index, self.definition.columns[index].type_name, side)
        header = HEADER_COLUMNS.get(name.name.upper())
        if header is not None and side is Side.PLAIN:
            words = tuple(Literal(word, name.span) for word in ("GGHEADER", header))
            return self.compile(Call("GETENV", words, name.span))
        if name.quoted and side is Side.PLAIN:
            return nodes.constant(name.name, literal=True)  # older files write literals this way
        known = {column.name for column in self.definition.columns}
        hint = did_you_mean(name.name, known) or "a text must be in single quotes"
        return self.refuse(f"table {self.definition.name} has no column {name.name}", name, hint)

    def side(self, tree: Expression, side: Side) -> Node:
        """A column's value in one image of the row."""
        if not isinstance(tree, ColumnReference) or tree.qualifier:
            self.refuse("a column name is expected here", tree)
        return self._of_side(tree, side)

    def index(self, name: ColumnReference) -> int | None:
        """The index of a column: the exact name, or else the only one that differs in case."""
        names = [column.name for column in self.definition.columns]
        if name.name in names:
            return names.index(name.name)
        lowered = [each.lower() for each in names]
        wanted = name.name.lower()
        return lowered.index(wanted) if lowered.count(wanted) == 1 else None

    def result(self, name: ColumnReference) -> Node:
        """A column of a query's result."""
        query, wanted = name.qualifier.lower(), name.name.lower()
        if query not in self.queries:
            hint = did_you_mean(name.qualifier, self.queries) or "SQLEXEC (ID name, …) gives a query a name"
            self.refuse(f"there is no SQLEXEC named {name.qualifier or name.name}", name, hint)

        def evaluate(rows: Rows) -> list[Value]:
            found = rows.results.get(query)
            return [each.get(wanted, State.MISSING) for each in found] if found else [State.MISSING] * len(rows)

        return Node(evaluate, textual=True)

    def refuse(self, message: str, tree: Expression, hint: str = "", page: str = "") -> NoReturn:
        raise StatementError(
            message, code=EXPRESSION_CODE, column=tree.span[0] + 1, source=self.source, hint=hint, page=page
        )


Maker = Callable[[Call, Scope], Node]
"""Makes the node of a call. Raises StatementError."""


def compile_expression(tree: Expression, scope: Scope) -> Node:
    """Compile a tree to a node. Raises StatementError for an unknown column or a keyword that is not valid."""
    if isinstance(tree, Literal):
        return nodes.constant(tree.text, literal=True)
    if isinstance(tree, ColumnReference):
        return scope.column(tree)
    if isinstance(tree, Call):
        return scope.call(tree)
    if isinstance(tree, Unary):
        return _unary(tree, scope)
    if isinstance(tree, Binary):
        return _binary(tree, scope)
    value = tree.value
    return nodes.constant(
        int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else value
    )


def _unary(tree: Unary, scope: Scope) -> Node:
    operand = scope.compile(tree.operand)
    if tree.operator == "NOT":
        return applied(lambda value: _negated(truth(value)), operand)
    return (
        replace(applied(_minus, nodes.numbers(operand)), numeric=True)
        if tree.operator == "-"
        else nodes.numbers(operand)
    )


def _negated(value: bool | State) -> Value:
    return value if isinstance(value, State) else int(not value)


def _minus(value: Number) -> Value:
    return -value if isinstance(value, int) else value.copy_negate()


def _binary(tree: Binary, scope: Scope) -> Node:
    if isinstance(tree.right, Call) and tree.right.name in _STATE_TESTS:
        return _state_test(tree, tree.right, scope)
    left, right = scope.compile(tree.left), scope.compile(tree.right)
    if tree.operator in ("AND", "OR"):
        return short_circuit(left, right, ends_with=tree.operator == "OR")
    if tree.operator in ARITHMETIC:
        return arithmetic(tree.operator, nodes.numbers(left), nodes.numbers(right))
    for side, node in ((tree.left, left), (tree.right, right)):
        text = node.constant if node.literal else None
        if tree.operator in _ORDERED and isinstance(text, str) and isinstance(number_in(text), State):
            message = f"{tree.operator} compares numbers, and '{text}' is a text: no row would match"
            scope.refuse(message, side, "compare texts by @STRCMP (first, second) > 0", page="strcmp")
    return comparison(tree.operator, left, right)


def arithmetic(symbol: str, left: Node, right: Node) -> Node:
    """An arithmetic node. Columns of plain integers use the built-in integer operator."""
    general = applied(_ARITHMETIC[symbol], left, right)
    whole = _WHOLE.get(symbol)
    if whole is None or general.constant is not None:
        return replace(general, numeric=True)

    def evaluate(rows: Rows) -> list[Value]:
        mine, theirs = left.evaluate(rows), right.evaluate(rows)
        if set(map(type, mine)) | set(map(type, theirs)) <= _INTEGERS:
            return list(map(whole, mine, theirs))  # type: ignore[arg-type]
        return general.evaluate(rows)

    return Node(evaluate, numeric=True)


def _state_test(tree: Binary, test: Call, scope: Scope) -> Node:
    """``column = @NULL`` and similar tests: always true or false, never a state."""
    if tree.operator not in ("=", "<>"):
        scope.refuse(f"@{test.name} must follow = or <>", test, page=test.name.lower())
    tested, asked, wanted = scope.compile(tree.left), _STATE_TESTS[test.name], tree.operator == "="
    return Node(lambda rows: [int(asked(value) is wanted) for value in tested.evaluate(rows)])


def comparison(operator: str, left: Node, right: Node) -> Node:
    """A comparison: 1 or 0. ``=`` and ``<>`` compare as text if one side is a literal text or both are character columns."""
    if operator in ("=", "<>") and (left.literal or right.literal or (left.textual and right.textual)):
        return applied(_SAME_TEXT[operator], nodes.texts(left), nodes.texts(right))
    return applied(_COMPARISONS[operator], nodes.numbers(left), nodes.numbers(right))


def short_circuit(left: Node, right: Node, *, ends_with: bool) -> Node:
    """AND (``ends_with`` false) or OR. The right side is evaluated only for rows that the left side does not decide."""

    def evaluate(rows: Rows) -> list[Value]:
        found: list[Value] = []
        open_places: list[int] = []
        for place, value in enumerate(left.evaluate(rows)):
            judged = truth(value)
            if not isinstance(judged, State) and judged is not ends_with:
                open_places.append(place)
            found.append(judged if isinstance(judged, State) else int(judged))
        for place, value in zip(open_places, on_some(right, rows, open_places), strict=True):
            judged = truth(value)
            found[place] = judged if isinstance(judged, State) else int(judged)
        return found

    return Node(evaluate)


def on_some(node: Node, rows: Rows, places: list[int]) -> list[Value]:
    """A node's values for some of the rows only."""
    if not places:
        return []
    if len(places) == len(rows):
        return node.evaluate(rows)
    if node.plain:
        values = node.evaluate(rows)
        return [values[place] for place in places]
    return node.evaluate(rows.take(places))


def exactly(whole: Callable[[int, int], int], decimal: Callable[[Number, Number], Decimal]) -> Callable[..., Value]:
    """An exact calculation for integers and decimals. INVALID if the result is not a number."""

    def calculate(left: Number, right: Number) -> Value:
        if left.__class__ is int and right.__class__ is int:
            return whole(left, right)
        try:
            return decimal(left, right)
        except (Overflow, InvalidOperation):
            return State.INVALID

    return calculate


def _quotient(left: Number, right: Number) -> Value:
    if right == 0:
        return State.INVALID
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    try:
        return QUOTIENT.divide(left, right)
    except (Overflow, InvalidOperation):
        return State.INVALID


def _remainder(left: Number, right: Number) -> Value:
    if right == 0:
        return State.INVALID
    if isinstance(left, int) and isinstance(right, int):
        found = abs(left) % abs(right)
        return -found if left < 0 else found
    try:
        return EXACT.remainder(left, right)
    except (Overflow, InvalidOperation):
        return State.INVALID


_STATE_TESTS: dict[str, Callable[[Value], bool]] = {
    "PRESENT": lambda value: value is not State.MISSING,
    "ABSENT": lambda value: value is State.MISSING,
    "NULL": lambda value: value is State.NULL,
}
_ORDERED = frozenset({"<", ">", "<=", ">="})
_INTEGERS = {int}
_WHOLE: dict[str, Callable[[int, int], int]] = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
_ARITHMETIC: dict[str, Callable[..., Value]] = {
    "+": exactly(int.__add__, EXACT.add),
    "-": exactly(int.__sub__, EXACT.subtract),
    "*": exactly(int.__mul__, EXACT.multiply),
    "/": _quotient,
    "\\": _remainder,
}
_COMPARISONS: dict[str, Callable[..., Value]] = {
    "=": lambda left, right: int(order(left, right) == 0),
    "<>": lambda left, right: int(order(left, right) != 0),
    "<": lambda left, right: int(order(left, right) < 0),
    ">": lambda left, right: int(order(left, right) > 0),
    "<=": lambda left, right: int(order(left, right) <= 0),
    ">=": lambda left, right: int(order(left, right) >= 0),
}
_SAME_TEXT: dict[str, Callable[..., Value]] = {
    "=": lambda left, right: int(left.rstrip(" ") == right.rstrip(" ")),
    "<>": lambda left, right: int(left.rstrip(" ") != right.rstrip(" ")),
}
