"""How the checkpoint table names the threads of a coordinated Replicat, whose column holds eight characters."""

from __future__ import annotations

from typing import Final

LETTERS: Final = 5
"""Of the group's name; three digits of the thread's number follow."""


def thread_name(group: str, thread: int) -> str:
    """The name of a thread's row."""
    return f"{group[:LETTERS].upper()}{thread:03d}"
