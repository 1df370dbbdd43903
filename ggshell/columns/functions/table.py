"""Every @function by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ggshell.columns.nodes import Node
from ggshell.columns.scope import Scope
from ggshell.syntax.expression_tree import Call

Maker = Callable[[Call, Scope], Node]
"""Makes a call's node.  Raises StatementError."""


@cache
def makers() -> Mapping[str, Maker]:
    from ggshell.columns.functions import choices, dates, facts, numbers, octets, texts

    found: dict[str, Maker] = {}
    for module in (texts, numbers, choices, octets, dates, facts):
        found.update(module.FUNCTIONS)
    return found


def maker(call: Call, scope: Scope) -> Maker:
    """A call's function.  Raises StatementError where there is none."""
    found = makers().get(call.name)
    if found is None:
        scope.refuse(f"@{call.name} does not stand here", call, page=call.name.lower())
    return found
