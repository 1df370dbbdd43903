"""Take secrets out of statements before anything shows or keeps them: history, echo, logs, JSON, error messages."""

from __future__ import annotations

MASK = "*******"
"""What stands in place of a password behind PASSWORD, in ``password=`` and in URLs."""


def redacted(text: str) -> str:
    """The text with every password masked, by the rules of the reports."""
    if "://" not in text and "password" not in text.lower():
        return text  # start-up time: nothing more is loaded
    from ggshell.process.report import masked

    return masked(text)


def redacted_column(text: str, column: int) -> int:
    """Where a column (counted from 1) of a text is after redaction."""
    return min(len(redacted(text[: column - 1])), len(redacted(text))) + 1
