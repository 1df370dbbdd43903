"""@BINARY, @BINTOHEX and what else works on bytes; @BEFORE, @AFTER and @BEFOREAFTER, which choose an image."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ggshell.columns import nodes
from ggshell.columns.functions.arguments import fixed_number
from ggshell.columns.nodes import Node
from ggshell.columns.rows import Side
from ggshell.columns.scope import Scope
from ggshell.columns.values import State, Value
from ggshell.syntax.expression_tree import Call

if TYPE_CHECKING:
    from ggshell.columns.functions.table import Maker

LONGEST_NUMBER = 8
"""How many bytes @NUMBIN takes for a number."""


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


def _filled(octet: bytes) -> Maker:
    """@HIGHVAL and @LOWVAL: so many bytes, as many as the target column has where none are named."""

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


FUNCTIONS: dict[str, Maker] = {
    "BINARY": _binary,
    "BINTOHEX": _of_bytes(lambda value: value.hex().upper()),
    "HEXTOBIN": _unhexed,
    "NUMBIN": _of_bytes(lambda value: int.from_bytes(value) if 0 < len(value) <= LONGEST_NUMBER else State.INVALID),
    "OGG_SHA1": _of_bytes(lambda value: hashlib.sha1(value, usedforsecurity=False).digest()),
    "HIGHVAL": _filled(b"\xff"),
    "LOWVAL": _filled(b"\0"),
    "BEFORE": _of_side(Side.BEFORE),
    "AFTER": _of_side(Side.AFTER),
    "BEFOREAFTER": _of_side(Side.EITHER),
}
