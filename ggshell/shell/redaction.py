"""Take secrets out of statements before anything shows or keeps them: history, echo, logs, JSON, error messages."""

from __future__ import annotations

from ggshell.process.report import masked as redacted

__all__ = ["MASK", "redacted", "redacted_column"]

MASK = "*******"
"""What stands in place of a password behind PASSWORD, in ``password=`` and in URLs."""


def redacted_column(text: str, column: int) -> int:
    """Where a column (counted from 1) of a text is after redaction."""
    return min(len(redacted(text[: column - 1])), len(redacted(text))) + 1
