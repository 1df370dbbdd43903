"""Counts with their nouns, as results and messages show them: ``1 file``, ``12,000 files``."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number, with commas, and its noun in the singular or with an s."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
