"""@IF, @CASE, @EVAL, and the functions that test or set the state of a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from ggshell.language.expressions import Call
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.compiler import Maker, Scope, comparison, on_some
from ggshell.pipeline.transform.functions.arguments import keyword, texts
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import State, Value, clean, truth

Pairs = Sequence[tuple[Node, Node]]


def _if(call: Call, scope: Scope) -> Node:
    condition, yes, no = scope.all(call.arguments)
    return _first_true([(condition, yes)], no)


def _eval(call: Call, scope: Scope) -> Node:
    found = scope.all(call.arguments)
    default = found.pop() if len(found) % 2 else _missing()
    return _first_true(list(zip(found[::2], found[1::2], strict=True)), default)


def _case(call: Call, scope: Scope) -> Node:
    value, *rest = scope.all(call.arguments)
    default = rest.pop() if len(rest) % 2 else _missing()
    pairs = [(_equal(value, test), result) for test, result in zip(rest[::2], rest[1::2], strict=True)]
    return _first_true(pairs, default)


def _equal(value: Node, test: Node) -> Node:
    """Whether two values are equal. A state on the right is never equal; a state on the left is the result."""
    compared = comparison("=", value, test)

    def evaluate(rows: Rows) -> list[Value]:
        found = compared.evaluate(rows)
        if clean(found):
            return found
        return [
            (mine if isinstance(mine, State) else 0) if isinstance(each, State) else each
            for each, mine in zip(found, value.evaluate(rows), strict=True)
        ]

    return Node(evaluate)


def _missing() -> Node:
    return nodes.constant(State.MISSING)


def _first_true(pairs: Pairs, default: Node) -> Node:
    """The result of the first true condition. Nothing is evaluated for rows that do not need it."""

    def evaluate(rows: Rows) -> list[Value]:
        found: list[Value] = [State.MISSING] * len(rows)
        rest = list(range(len(rows)))
        for condition, result in pairs:
            chosen: list[int] = []
            others: list[int] = []
            for place, value in zip(rest, on_some(condition, rows, rest), strict=True):
                judged = truth(value)
                if isinstance(judged, State):
                    found[place] = judged
                else:
                    (chosen if judged else others).append(place)
            _put(found, chosen, result, rows)
            rest = others
        _put(found, rest, default, rows)
        return found

    return Node(evaluate)


def _put(found: list[Value], places: list[int], result: Node, rows: Rows) -> None:
    for place, value in zip(places, on_some(result, rows, places), strict=True):
        found[place] = value


def _column_test(call: Call, scope: Scope) -> Node:
    tested = scope.compile(call.arguments[0])
    numeric = nodes.numbers(tested) if tested.place is not None and tested.place.family == "number" else None
    tests = [_TESTS[keyword(tree)] for tree in call.arguments[1:]]

    def evaluate(rows: Rows) -> list[Value]:
        values = (numeric or tested).evaluate(rows)
        return [int(any(test(value) for test in tests)) for value in values]

    return Node(evaluate)


def _is_no_number(value: Value) -> bool:
    return (isinstance(value, Decimal) and value.is_nan()) or value == "NaN"


def _is_infinite(value: Value) -> bool:
    return (isinstance(value, Decimal) and value.is_infinite()) or value in ("Infinity", "-Infinity")


_TESTS: dict[str, Callable[[Value], bool]] = {
    "PRESENT": lambda value: value not in (State.NULL, State.MISSING),
    "NULL": lambda value: value is State.NULL,
    "MISSING": lambda value: value is State.MISSING,
    "INVALID": lambda value: value is State.INVALID,
    "NAN": _is_no_number,
    "SNAN": _is_no_number,
    "INF": _is_infinite,
}
_STATES: dict[str, Value] = {
    "NULL": State.NULL,
    "MISSING": State.MISSING,
    "INVALID": State.INVALID,
    "INFINITY": "Infinity",
}


def _column_state(call: Call, scope: Scope) -> Node:
    return nodes.constant(_STATES[keyword(call.arguments[0])])


def _one_of(call: Call, scope: Scope) -> Node:
    value, *others = texts(call, scope)
    fixed = {other.constant.rstrip(" ") for other in others if isinstance(other.constant, str)}
    if all(other.constant is not None for other in others):
        return nodes.applied(lambda text: int(text.rstrip(" ") in fixed), value)

    def evaluate(rows: Rows) -> list[Value]:
        columns = [other.evaluate(rows) for other in others]
        found: list[Value] = []
        for text, *rest in zip(value.evaluate(rows), *columns, strict=True):
            if isinstance(text, State):
                found.append(text)
            else:
                wanted = str(text).rstrip(" ")
                found.append(int(any(isinstance(each, str) and each.rstrip(" ") == wanted for each in rest)))
        return found

    return Node(evaluate)


FUNCTIONS: dict[str, Maker] = {
    "IF": _if,
    "EVAL": _eval,
    "CASE": _case,
    "COLTEST": _column_test,
    "COLSTAT": _column_state,
    "VALONEOF": _one_of,
}
