"""Passwords do not leave a check, whatever is wrong with the statement around them."""

from __future__ import annotations

import re

_SECRET = re.compile(r"(?i)(\bPASSWORD\b[\s,=]*)(\"[^\"]*\"?|'[^']*'?|[^\s,;]+)")


def masked(text: str) -> str:
    """The text with every password replaced by as many stars, so that columns stay."""
    return _SECRET.sub(lambda match: match[1] + "*" * len(match[2]), text)
