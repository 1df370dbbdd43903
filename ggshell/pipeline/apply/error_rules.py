"""The rules of REPERROR: the error, the response, and how often and when an operation is tried again; and the switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

DEFAULT = "DEFAULT"
DEFAULT2 = "DEFAULT2"
"""The rule that applies if the response is EXCEPTION and the table has no exceptions MAP."""
NO_DATA = "02000"
"""The SQLSTATE for a missing row, which the target itself does not report as an error."""
UNIQUE = "23505"
FOREIGN = "23503"
_NUMBERS = {
    "1": (UNIQUE,),
    "60": ("40P01",),
    "100": (NO_DATA,),
    "904": ("42703",),
    "942": ("42P01",),
    "955": ("42P07", "42710", "42723"),
    "1400": ("23502",),
    "1403": (NO_DATA,),
    "1407": ("23502",),
    "1418": ("42704", "42P01"),
    "1430": ("42701",),
    "1438": ("22003",),
    "1722": ("22P02",),
    "2290": ("23514",),
    "2291": ("23503",),
    "2260": ("42P16",),
    "2264": ("42710",),
    "2289": ("42P01",),
    "2292": ("23503",),
    "2443": ("42704",),
    "4043": ("42704", "42883"),
    "12899": ("22001",),
}
"""Error numbers in older parameter files, with the SQLSTATEs that mean the same."""


class Response(StrEnum):
    """The responses of REPERROR."""

    ABEND = "ABEND"
    DISCARD = "DISCARD"
    EXCEPTION = "EXCEPTION"
    IGNORE = "IGNORE"
    RETRYOP = "RETRYOP"
    TRANSABORT = "TRANSABORT"
    TRANSDISCARD = "TRANSDISCARD"
    TRANSEXCEPTION = "TRANSEXCEPTION"


WHOLE = frozenset({Response.TRANSABORT, Response.TRANSDISCARD, Response.TRANSEXCEPTION})
"""The responses that concern the whole transaction."""


class ErrorRule(NamedTuple):
    """One REPERROR rule: for an SQLSTATE, an error number of another database, DEFAULT or DEFAULT2.

    ``retries``: of RETRYOP and TRANSABORT (there None means without limit); ``delay``: seconds before TRANSABORT tries
    again.
    """

    error: str
    response: Response
    retries: int | None = 10
    delay: float = 0.0


class Switches(NamedTuple):
    """HANDLECOLLISIONS, OVERRIDEDUPS and INSERTMISSINGUPDATES, as they are in effect for a MAP statement."""

    collisions: bool = False
    override_duplicates: bool = False
    insert_missing: bool = False


class ErrorRules:
    """Rules by error; if an error has several, the last one applies; DEFAULT is for errors without a rule."""

    def __init__(self, rules: Iterable[ErrorRule] = ()) -> None:
        self._rules = {state: rule for rule in rules for state in states(rule.error)}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __iter__(self) -> Iterator[ErrorRule]:
        return iter(self._rules.values())

    def of(self, state: str) -> ErrorRule | None:
        """Return the rule for an SQLSTATE or a RAISEERROR number; None if there is none."""
        return self._rules.get(state) or self._rules.get(DEFAULT)

    @property
    def without_exceptions(self) -> ErrorRule | None:
        """The rule for errors that EXCEPTION cannot handle (DEFAULT2); None if there is none."""
        return self._rules.get(DEFAULT2)


def states(error: str) -> tuple[str, ...]:
    """Return the SQLSTATEs of an error in a parameter file."""
    text = error.upper().removeprefix("ORA-").lstrip("-")
    if text.isdigit():
        return _NUMBERS.get(text.lstrip("0") or "0", (text,))
    return (text,)
