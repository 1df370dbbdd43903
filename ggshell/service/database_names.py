"""Names of database objects, as requests give them and as statements name them."""

from __future__ import annotations

import re
from typing import Final

from ggshell.errors import UsageError
from ggshell.types import quote, split_name

_PLAIN: Final = re.compile(r"[\w$*?.]+")


def object_name(text: str) -> str:
    """Return the name of a database object as statements name it. Raises UsageError if it is not a valid name."""
    if _PLAIN.fullmatch(text):
        return text
    try:
        parts = split_name(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if any(not part.isprintable() for part in parts):
        raise UsageError(f"{text[:80]!a} contains a control character")
    return ".".join(map(quote, parts))
