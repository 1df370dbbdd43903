"""Values of requests as words of statements."""

from __future__ import annotations

import re
from typing import Final

from ggshell.errors import UsageError

_PLAIN: Final = re.compile(r"[A-Za-z0-9_$#*?./:\\-]+")
_UNQUOTABLE: Final = re.compile(r"[\x00-\x1f\x7f]")


def word(value: str) -> str:
    """Return a value as a word of a statement, in quotes if necessary. Raises UsageError for one that cannot be quoted."""
    if _PLAIN.fullmatch(value):
        return value
    return quoted(value)


def quoted(value: str) -> str:
    """Return a value in quotes.

    Raises UsageError for a control character, or both kinds of quotes; it does not quote the value, which can be a password.
    """
    if _UNQUOTABLE.search(value):
        raise UsageError("a value of the request contains a control character")
    for quote in ('"', "'"):
        if quote not in value:
            return f"{quote}{value}{quote}"
    raise UsageError("a value of the request contains both kinds of quotes")
