"""The character and numeric conversion functions: texts, numbers, bytes, and the image that a column is read from."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from functools import partial

from ggshell.errors import GgsError
from ggshell.language.expressions import Call
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.compiler import Maker, Scope
from ggshell.pipeline.transform.functions.arguments import fixed_number, keyword, text, texts, whole
from ggshell.pipeline.transform.nodes import Node, applied, numbers
from ggshell.pipeline.transform.rows import Rows, Side
from ggshell.pipeline.transform.values import Number, State, Value, to_text


def _of_texts(function: Callable[..., Value]) -> Maker:
    """A function whose arguments are all texts."""

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
    """Positions count bytes of UTF-8."""
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
    """A function on texts with integers at some argument positions."""

    def make(call: Call, scope: Scope) -> Node:
        parts = [
            whole(tree, scope) if place in whole_places or (every_second and place % 2) else text(tree, scope)
            for place, tree in enumerate(call.arguments)
        ]
        return applied(function, *parts)

    return make


def _filled(form: str, width: int | None, number: Number) -> str:
    """A number as text, filled to a width.

    A decimal point counts toward the width; with RIGHTZERO a minus sign does not.
    """
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


_TEXTS: dict[str, Maker] = {
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


# @COMPUTE, @NUMSTR, @RANGE.


def _number(call: Call, scope: Scope) -> Node:
    return nodes.numbers(scope.compile(call.arguments[0]))


def _range(call: Call, scope: Scope) -> Node:
    part, total = fixed_number(call.arguments[0], scope), fixed_number(call.arguments[1], scope)
    if not 1 <= part <= total:
        scope.refuse(f"@RANGE requests part {part} of {total}", call, page="range")
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
                    f"@RANGE read a row of {scope.definition.name} in which a column is NULL or missing",
                    code="GGS-00520",
                    hint="name columns that are in every record (ADD TRANDATA … COLS)",
                )
            text = "".join(f"{value}\0" for value in values)
            found.append(int(1 + zlib.crc32(text.encode()) % total == part))
        return found

    return Node(evaluate)


_NUMBERS: dict[str, Maker] = {"COMPUTE": _number, "NUMSTR": _number, "RANGE": _range}


# @BINARY, @BINTOHEX and the other functions on bytes; @BEFORE, @AFTER and @BEFOREAFTER, which select an image.


LONGEST_NUMBER = 8
"""The most bytes that @NUMBIN accepts for a number."""


def _of_bytes(function: Callable[[bytes], Value]) -> Maker:
    def make(call: Call, scope: Scope) -> Node:
        return nodes.applied(function, nodes.octets(scope.compile(call.arguments[0])))

    return make


def _binary(call: Call, scope: Scope) -> Node:
    return nodes.octets(scope.compile(call.arguments[0]))


def _unhexed(call: Call, scope: Scope) -> Node:
    return nodes.applied(_bytes_of_digits, nodes.texts(scope.compile(call.arguments[0])))


def _bytes_of_digits(text: str) -> Value:
    if len(text) % 2 or not all(letter in "0123456789abcdefABCDEF" for letter in text):
        return State.INVALID
    return bytes.fromhex(text)


def _repeated(octet: bytes) -> Maker:
    """@HIGHVAL and @LOWVAL: the given number of bytes, by default the length of the target column."""

    def make(call: Call, scope: Scope) -> Node:
        length = fixed_number(call.arguments[0], scope) if call.arguments else scope.length
        if length is None or length < 0 or scope.family not in (None, "bytes"):
            return nodes.constant(State.INVALID)
        return nodes.constant(octet * length)

    return make


def _of_side(side: Side) -> Maker:
    def make(call: Call, scope: Scope) -> Node:
        return scope.side(call.arguments[0], side)

    return make


_OCTETS: dict[str, Maker] = {
    "BINARY": _binary,
    "BINTOHEX": _of_bytes(lambda value: value.hex().upper()),
    "HEXTOBIN": _unhexed,
    "NUMBIN": _of_bytes(lambda value: int.from_bytes(value) if 0 < len(value) <= LONGEST_NUMBER else State.INVALID),
    "OGG_SHA1": _of_bytes(lambda value: hashlib.sha1(value, usedforsecurity=False).digest()),
    "HIGHVAL": _repeated(b"\xff"),
    "LOWVAL": _repeated(b"\0"),
    "BEFORE": _of_side(Side.BEFORE),
    "AFTER": _of_side(Side.AFTER),
    "BEFOREAFTER": _of_side(Side.EITHER),
}


FUNCTIONS: dict[str, Maker] = {**_TEXTS, **_NUMBERS, **_OCTETS}
