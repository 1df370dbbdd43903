"""Counts with their nouns, as results and messages show them: ``1 file``, ``12,000 files``."""

from __future__ import annotations

from decimal import Decimal


def seconds_text(seconds: Decimal) -> str:
    """Return a time in seconds, without trailing zeros: ``1 second``, ``0.5 seconds``."""
    return f"{seconds.normalize():f} second{'s' if seconds != 1 else ''}"


def counted(number: int, noun: str) -> str:
    """Return a number, with commas, and its noun in the singular or with an s."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
