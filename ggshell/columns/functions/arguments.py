"""Arguments of calls: keywords, fixed numbers and texts, literals with escapes."""

from __future__ import annotations

import re

from ggshell.columns import nodes
from ggshell.columns.nodes import Node
from ggshell.columns.scope import Scope
from ggshell.columns.values import State, to_number
from ggshell.syntax.expression_tree import Call, Column, Expression, Literal

_ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\([0-7]{3})")


def keyword(tree: Expression) -> str:
    """A bare keyword, in upper case; older files quote it."""
    if isinstance(tree, Column):
        return tree.name.upper()
    return tree.text.upper() if isinstance(tree, Literal) else ""


def text(tree: Expression, scope: Scope) -> Node:
    """An argument as texts; escapes in a literal become the characters that they stand for."""
    node = scope.compile(tree)
    if not node.literal or not isinstance(node.constant, str):
        return nodes.texts(node)

    def character(match: re.Match[str]) -> str:
        code = int(match[1] or match[2], 16) if match[1] or match[2] else int(match[3], 8)
        if not code:
            scope.refuse("a text holds no character with the code 0", tree)
        return chr(code)

    return nodes.constant(_ESCAPE.sub(character, node.constant), literal=True)


def texts(call: Call, scope: Scope) -> list[Node]:
    return [text(tree, scope) for tree in call.arguments]


def whole(tree: Expression, scope: Scope) -> Node:
    """An argument as whole numbers: a fraction is cut off."""
    return nodes.applied(_cut, nodes.numbers(scope.compile(tree)))


def _cut(number: object) -> int | State:
    try:
        return int(number)  # type: ignore[call-overload,no-any-return]
    except (ValueError, OverflowError):
        return State.INVALID


def fixed_number(tree: Expression, scope: Scope) -> int:
    """A number that is the same for all rows.  Raises StatementError for anything else."""
    found = scope.compile(tree).constant
    number = to_number(found) if found is not None else None
    if not isinstance(number, int):
        scope.refuse("a whole number stands here", tree)
    return number


def fixed_text(tree: Expression, scope: Scope) -> str:
    """A text that is the same for all rows.  Raises StatementError for anything else."""
    found = scope.compile(tree).constant
    if not isinstance(found, str):
        scope.refuse("a text in single quotes stands here", tree)
    return found
