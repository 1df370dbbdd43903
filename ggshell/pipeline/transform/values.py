"""The values of expressions, and conversions between their kinds.

A value is a text, a number (exact in decimals), bytes, or a state: a column can be NULL, missing from its record, or
invalid. If a function's arguments include a state, that state is the result; of several states, the one with the highest
rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation, Overflow
from enum import Enum
from typing import Final, TypeAlias


class State(Enum):
    """The state of a column without a value; the number is the rank."""

    NULL = 1
    MISSING = 2
    INVALID = 3


Number: TypeAlias = int | Decimal
Value: TypeAlias = str | int | Decimal | bytes | State

_DIGITS: Final = 200_000
EXACT: Final = Context(prec=_DIGITS, Emax=_DIGITS, Emin=-_DIGITS, traps=[Overflow, InvalidOperation])
"""Sums and products are exact: no database column has more digits."""
QUOTIENT: Final = Context(prec=38, Emax=_DIGITS, Emin=-_DIGITS, traps=[Overflow, InvalidOperation])

_WHOLE = re.compile(r" *[-+]?[0-9]{1,4000} *")
_NUMBER = re.compile(r" *[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,6})? *")
_NO_NUMBERS = {"NaN": Decimal("NaN"), "Infinity": Decimal("Infinity"), "-Infinity": Decimal("-Infinity")}


def worst(values: Iterable[Value]) -> State | None:
    """The state with the highest rank among some values; None if there is no state."""
    found: State | None = None
    for value in values:
        if isinstance(value, State) and (found is None or value.value > found.value):
            found = value
    return found


def clean(values: list[Value]) -> bool:
    """Whether no value of a column is a state."""
    return State not in set(map(type, values))


def number_in(text: str) -> Value:
    """The number in a text; INVALID if the text is not a number."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return EXACT.create_decimal(text.strip(" "))
    return State.INVALID


def column_number(text: str) -> Value:
    """The value of a numeric column, which can also be NaN or infinite."""
    try:
        return int(text)
    except ValueError:
        found = number_in(text)
        return _NO_NUMBERS.get(text, found) if found is State.INVALID else found


def to_number(value: Value) -> Value:
    """A value as a number; INVALID if it is not a number."""
    if isinstance(value, str):
        return number_in(value)
    return State.INVALID if isinstance(value, bytes) else value


def to_text(value: Value) -> Value:
    """A value as text: numbers without an exponent, bytes as PostgreSQL prints them."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int):
        return str(value)
    return "\\x" + value.hex() if isinstance(value, bytes) else value


def to_bytes(value: Value) -> Value:
    """A value as bytes; a text in UTF-8."""
    if isinstance(value, bytes | State):
        return value
    text = to_text(value)
    return text.encode() if isinstance(text, str) else text


def image_value(value: Value, binary: bool) -> bytes | None:
    """A value or NULL, but no other state, as stored in a row image. ``binary``: for a column of bytes."""
    if value is State.NULL:
        return None
    if binary:
        found = to_bytes(value)
        return b"\\x" + found.hex().encode() if isinstance(found, bytes) else None
    if isinstance(value, bytes):
        return value
    text = to_text(value)
    return text.encode() if isinstance(text, str) else None


def truth(value: Value) -> bool | State:
    """Whether a value counts as true: every number except 0. A state is returned as it is."""
    if value.__class__ is int:
        return value != 0
    number = to_number(value)
    return number if isinstance(number, State) else number != 0


def order(left: Number, right: Number) -> int:
    """-1, 0 or 1. As in PostgreSQL, NaN equals itself and is greater than all other numbers."""
    if left == right:
        return 0
    try:
        return -1 if left < right else 1
    except InvalidOperation:
        mine, theirs = (isinstance(number, Decimal) and number.is_nan() for number in (left, right))
        return int(mine) - int(theirs)
