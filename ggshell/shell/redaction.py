"""Take secrets out of statements before anything shows or keeps them: history, echo, logs, JSON, error messages."""

from __future__ import annotations

import re

MASK = "*******"
_VALUE = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;]+)"
_SECRETS = (
    re.compile(rf"(\bPASSWORD\b\s*[,=]?\s*){_VALUE}", re.IGNORECASE),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@]+(?=@)", re.IGNORECASE),
)


def redacted(text: str) -> str:
    """The text with every password replaced: behind PASSWORD, in ``password=``, and in URLs."""
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def redacted_column(text: str, column: int) -> int:
    """Where a column (counted from 1) of a text is after redaction."""
    return min(len(redacted(text[: column - 1])), len(redacted(text))) + 1
