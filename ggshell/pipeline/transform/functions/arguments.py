"""Arguments of function calls: keywords, constant numbers and texts, literals with escapes."""

from __future__ import annotations

import re

from ggshell.language.expressions import Call, ColumnReference, Expression, Literal
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.values import State, to_number

_ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\([0-7]{3})")


def keyword(tree: Expression) -> str:
    """A bare keyword, in upper case. Older files quote keywords."""
    if isinstance(tree, ColumnReference):
        return tree.name.upper()
    return tree.text.upper() if isinstance(tree, Literal) else ""


def text(tree: Expression, scope: Scope) -> Node:
    """An argument as text. Escapes in a literal are replaced by their characters."""
    node = scope.compile(tree)
    if not node.literal or not isinstance(node.constant, str):
        return nodes.texts(node)

    def character(match: re.Match[str]) -> str:
        code = int(match[1] or match[2], 16) if match[1] or match[2] else int(match[3], 8)
        if not code:
            scope.refuse("a text cannot contain the character with code 0", tree)
        return chr(code)

    return nodes.constant(_ESCAPE.sub(character, node.constant), literal=True)


def texts(call: Call, scope: Scope) -> list[Node]:
    return [text(tree, scope) for tree in call.arguments]


def whole(tree: Expression, scope: Scope) -> Node:
    """An argument as an integer; a fraction is truncated."""
    return nodes.applied(_cut, nodes.numbers(scope.compile(tree)))


def _cut(number: object) -> int | State:
    try:
        return int(number)  # type: ignore[call-overload,no-any-return]
    except (ValueError, OverflowError):
        return State.INVALID


def fixed_number(tree: Expression, scope: Scope) -> int:
    """An integer constant. Raises StatementError for anything else."""
    found = scope.compile(tree).constant
    number = to_number(found) if found is not None else None
    if not isinstance(number, int):
        scope.refuse("a whole number is expected here", tree)
    return number


def fixed_text(tree: Expression, scope: Scope) -> str:
    """A text constant. Raises StatementError for anything else."""
    found = scope.compile(tree).constant
    if not isinstance(found, str):
        scope.refuse("a text in single quotes is expected here", tree)
    return found
