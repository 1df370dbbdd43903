"""@STRCAT, @STREXT and their kin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ggshell.columns.functions.arguments import keyword, text, texts, whole
from ggshell.columns.nodes import Node, applied, numbers
from ggshell.columns.scope import Scope
from ggshell.columns.values import Number, Value, to_text
from ggshell.syntax.expression_tree import Call

if TYPE_CHECKING:
    from ggshell.columns.functions.table import Maker


def _of_texts(function: Callable[..., Value]) -> Maker:
    """A function all of whose arguments are texts."""

    def make(call: Call, scope: Scope) -> Node:
        return applied(function, *texts(call, scope))

    return make


def _joined(*parts: str) -> str:
    return "".join(parts)


def _compared(left: str, right: str) -> int:
    left, right = left.rstrip(" "), right.rstrip(" ")
    return (left > right) - (left < right)


def _equal(left: str, right: str) -> int:
    return int(left.rstrip(" ") == right.rstrip(" "))


def _begins_compared(left: str, right: str, length: int) -> int:
    most = max(length, 0)
    left, right = left.rstrip(" ")[:most], right.rstrip(" ")[:most]
    return (left > right) - (left < right)


def _part(value: str, first: int, last: int) -> str:
    return value[max(first, 1) - 1 : max(last, 0)]


def _found(value: str, wanted: str, first: int = 1) -> int:
    """Places are counted in bytes of UTF-8."""
    return value.encode().find(wanted.encode(), max(first, 1) - 1) + 1


def _beginnings(*arguments: str | int) -> str:
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    return "".join(str(value)[: max(int(length), 0)] for value, length in pairs)


def _replaced(value: str, *pairs: str) -> str:
    for wanted, instead in zip(pairs[::2], pairs[1::2], strict=True):
        if wanted:
            value = value.replace(wanted, instead)
    return value


def _mixed(function: Callable[..., Value], *whole_places: int, every_second: bool = False) -> Maker:
    """A function of texts, but with whole numbers at some places."""

    def make(call: Call, scope: Scope) -> Node:
        parts = [
            whole(tree, scope) if place in whole_places or (every_second and place % 2) else text(tree, scope)
            for place, tree in enumerate(call.arguments)
        ]
        return applied(function, *parts)

    return make


def _filled(form: str, width: int | None, number: Number) -> str:
    """A number as text; a decimal point counts for its width, a minus sign does not with zeros in front."""
    shown = str(to_text(number))
    if width is None or form == "LEFT":
        return shown
    sign, digits = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
    if form == "RIGHTZERO":
        return sign + digits.zfill(width)
    fill = " " * (width - len(digits))
    return shown + fill if form == "LEFTSPACE" else fill + shown


def _strnum(call: Call, scope: Scope) -> Node:
    form = keyword(call.arguments[1])
    value = numbers(scope.compile(call.arguments[0]))
    if len(call.arguments) > 2:
        return applied(lambda number, width: _filled(form, width, number), value, whole(call.arguments[2], scope))
    return applied(partial(_filled, form, scope.length), value)


FUNCTIONS: dict[str, Maker] = {
    "STRCAT": _of_texts(_joined),
    "STRCMP": _of_texts(_compared),
    "STREQ": _of_texts(_equal),
    "STREXT": _mixed(_part, 1, 2),
    "STRFIND": _mixed(_found, 2),
    "STRLEN": _of_texts(len),
    "STRLTRIM": _of_texts(lambda value: value.lstrip(" ")),
    "STRNCAT": _mixed(_beginnings, every_second=True),
    "STRNCMP": _mixed(_begins_compared, 2),
    "STRNUM": _strnum,
    "STRRTRIM": _of_texts(lambda value: value.rstrip(" ")),
    "STRSUB": _of_texts(_replaced),
    "STRTRIM": _of_texts(lambda value: value.strip(" ")),
    "STRUP": _of_texts(str.upper),
}
