"""REPERROR's rules as values: the error, what is done about it, how often and when it is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

DEFAULT = "DEFAULT"
DEFAULT2 = "DEFAULT2"
"""What holds where EXCEPTION is asked for and the table has no exceptions MAP."""
NO_DATA = "02000"
"""SQLSTATE of a row that is not there; the target itself does not call that an error."""
UNIQUE = "23505"
_NUMBERS = {
    "1": (UNIQUE,),
    "60": ("40P01",),
    "100": (NO_DATA,),
    "1400": ("23502",),
    "1403": (NO_DATA,),
    "1407": ("23502",),
    "1438": ("22003",),
    "1722": ("22P02",),
    "2290": ("23514",),
    "2291": ("23503",),
    "2292": ("23503",),
    "12899": ("22001",),
}
"""Error numbers that older files name, as the SQLSTATEs that mean the same."""


class Response(StrEnum):
    """What REPERROR may ask for."""

    ABEND = "ABEND"
    DISCARD = "DISCARD"
    EXCEPTION = "EXCEPTION"
    IGNORE = "IGNORE"
    RETRYOP = "RETRYOP"
    TRANSABORT = "TRANSABORT"
    TRANSDISCARD = "TRANSDISCARD"
    TRANSEXCEPTION = "TRANSEXCEPTION"


WHOLE = frozenset({Response.TRANSABORT, Response.TRANSDISCARD, Response.TRANSEXCEPTION})
"""The responses that are about the whole transaction."""


class ErrorRule(NamedTuple):
    """One REPERROR: an SQLSTATE, a number of another database, DEFAULT or DEFAULT2.

    ``retries``: of RETRYOP, and of TRANSABORT, where None is no end; ``delay``: seconds before TRANSABORT tries again.
    """

    error: str
    response: Response
    retries: int | None = 10
    delay: float = 0.0


class ErrorRules:
    """Rules by error; of several for an error the last one counts, DEFAULT is for errors without one."""

    def __init__(self, rules: Iterable[ErrorRule] = ()) -> None:
        self._rules = {state: rule for rule in rules for state in states(rule.error)}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __iter__(self) -> Iterator[ErrorRule]:
        return iter(self._rules.values())

    def of(self, state: str) -> ErrorRule | None:
        """The rule for an SQLSTATE, or for a number that RAISEERROR gives; None where nothing is said."""
        return self._rules.get(state) or self._rules.get(DEFAULT)

    @property
    def behind(self) -> ErrorRule | None:
        """The rule for what EXCEPTION cannot answer."""
        return self._rules.get(DEFAULT2)


def states(error: str) -> tuple[str, ...]:
    """The SQLSTATEs that an error named in a file means."""
    text = error.upper().removeprefix("ORA-").lstrip("-")
    if text.isdigit():
        return _NUMBERS.get(text.lstrip("0") or "0", (text,))
    return (text,)
