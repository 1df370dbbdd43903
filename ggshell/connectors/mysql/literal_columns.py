"""Literals of many values at once: one pattern examines the values of a column, which then get quotes together.

Values that the pattern does not match are left to the function for one value, which converts or refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ggshell.record.fields import Value

NULL: Final = b"NULL"

Literal = Callable[[bytes], bytes]
Literals = Callable[[Iterable[Value]], list[bytes]]

_END: Final = b"\n"


class PlainValues(NamedTuple):
    """Values that become literals with only a prefix and a suffix.

    ``pattern``: of one value, without line breaks; ``dropped``: the end of each value that the literal does not have.
    """

    pattern: bytes
    prefix: bytes = b""
    suffix: bytes = b""
    dropped: bytes = b""


def by_column(plain: Sequence[PlainValues], one: Literal) -> Literals:
    """The function that makes the literals of a column, in the first plain form that matches all values, else one by one."""
    forms = [(each, re.compile(b"(?:%s%s)*+" % (each.pattern + re.escape(each.dropped), _END))) for each in plain]

    def literals(values: Iterable[Value]) -> list[bytes]:
        every = list(values)
        present = [value for value in every if value is not None] if None in every else every
        text = _END.join(present) + _END  # type: ignore[arg-type]  # no value is None
        for form, pattern in forms:
            if pattern.fullmatch(text) and text.count(_END) == len(present):
                return _with_nulls(every, _plain(text, form))
        return [NULL if value is None else one(value) for value in every]

    return literals


def text_literals(values: Iterable[Value]) -> list[bytes]:
    """The literals of texts of any length."""
    return [NULL if value is None else text_literal(value) for value in values]


def text_literal(value: bytes) -> bytes:
    return b"'%s'" % (value.replace(b"'", b"''") if b"'" in value else value)


def _plain(text: bytes, form: PlainValues) -> list[bytes]:
    """The literals of values that match a form; ``text``: each value with a line break after it."""
    between = form.suffix + _END + form.prefix
    made = text[: -len(form.dropped) - 1].replace(form.dropped + _END, between)
    return (form.prefix + made + form.suffix).split(_END)


def _with_nulls(values: Sequence[Value], literals: list[bytes]) -> list[bytes]:
    """The literals of all values, from those of the values that are not NULL."""
    if len(literals) == len(values):
        return literals
    following = iter(literals)
    return [NULL if value is None else next(following) for value in values]
