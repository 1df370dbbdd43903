"""@COMPUTE, @NUMSTR, @RANGE."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ggshell.columns import nodes
from ggshell.columns.functions.arguments import fixed_number
from ggshell.columns.nodes import Node
from ggshell.columns.rows import Rows
from ggshell.columns.scope import Scope
from ggshell.columns.values import State, Value
from ggshell.errors import GgsError
from ggshell.syntax.expression_tree import Call

if TYPE_CHECKING:
    from ggshell.columns.functions.table import Maker


def _number(call: Call, scope: Scope) -> Node:
    return nodes.numbers(scope.compile(call.arguments[0]))


def _range(call: Call, scope: Scope) -> Node:
    part, total = fixed_number(call.arguments[0], scope), fixed_number(call.arguments[1], scope)
    if not 1 <= part <= total:
        scope.refuse(f"@RANGE asks for part {part} of {total}", call, page="range")
    named = scope.all(call.arguments[2:])
    if not named:
        columns = scope.definition.columns
        named = [nodes.column(index, columns[index].type_name) for index in scope.key]
    if not named:
        scope.refuse(f"@RANGE needs columns: {scope.definition.name} has no key", call, page="range")
    parts = [nodes.texts(node) for node in named]

    def evaluate(rows: Rows) -> list[Value]:
        found: list[Value] = []
        for values in zip(*(node.evaluate(rows) for node in parts), strict=True):
            if any(isinstance(value, State) for value in values):
                raise GgsError(
                    f"@RANGE met a row of {scope.definition.name} one of whose columns is NULL or missing",
                    code="GGS-00520",
                    hint="name columns that are in every record (ADD TRANDATA … COLS)",
                )
            text = "".join(f"{value}\0" for value in values)
            found.append(int(1 + zlib.crc32(text.encode()) % total == part))
        return found

    return Node(evaluate)


FUNCTIONS: dict[str, Maker] = {"COMPUTE": _number, "NUMSTR": _number, "RANGE": _range}
