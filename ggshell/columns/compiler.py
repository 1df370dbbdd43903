"""Expression trees to nodes: once for each map and table, so that no tree is walked for a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation, Overflow

from ggshell.columns import nodes
from ggshell.columns.nodes import Node, applied
from ggshell.columns.rows import Rows
from ggshell.columns.scope import Scope
from ggshell.columns.values import EXACT, QUOTIENT, Number, State, Value, order, truth
from ggshell.syntax.expression import ARITHMETIC
from ggshell.syntax.expression_tree import Binary, Call, Column, Expression, Literal, Unary


def compile_expression(tree: Expression, scope: Scope) -> Node:
    """A tree as a node.  Raises StatementError at what cannot be meant: an unknown column, a keyword that is none."""
    if isinstance(tree, Literal):
        return nodes.constant(tree.text, literal=True)
    if isinstance(tree, Column):
        return scope.column(tree)
    if isinstance(tree, Call):
        from ggshell.columns.functions.table import maker

        return maker(tree, scope)(tree, scope)
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
    return comparison(tree.operator, left, right)


def arithmetic(symbol: str, left: Node, right: Node) -> Node:
    """A calculation with numbers; whole numbers alone are left to the machine's own function."""
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
    """``column = @NULL`` and its like: true or false, never a state."""
    if tree.operator not in ("=", "<>"):
        scope.refuse(f"@{test.name} stands behind = or <>", test, page=test.name.lower())
    tested, asked, wanted = scope.compile(tree.left), _STATE_TESTS[test.name], tree.operator == "="
    return Node(lambda rows: [int(asked(value) is wanted) for value in tested.evaluate(rows)])


def comparison(operator: str, left: Node, right: Node) -> Node:
    """1 or 0; ``=`` and ``<>`` compare texts where one side is a literal text or both are columns of characters."""
    if operator in ("=", "<>") and (left.literal or right.literal or (left.textual and right.textual)):
        return applied(_SAME_TEXT[operator], nodes.texts(left), nodes.texts(right))
    return applied(_COMPARISONS[operator], nodes.numbers(left), nodes.numbers(right))


def short_circuit(left: Node, right: Node, *, ends_with: bool) -> Node:
    """AND (``ends_with`` false) or OR: the right side is computed only where the left one does not decide."""

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
    """A node's values for some of the rows, computed for no others."""
    if not places:
        return []
    if len(places) == len(rows):
        return node.evaluate(rows)
    if node.plain:
        values = node.evaluate(rows)
        return [values[place] for place in places]
    return node.evaluate(rows.take(places))


def exactly(whole: Callable[[int, int], int], decimal: Callable[[Number, Number], Decimal]) -> Callable[..., Value]:
    """A calculation, exact for whole numbers and for decimals; INVALID where no number comes out."""

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
