"""The results of the check before a move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ggshell.plurals import counted

MOST_NAMED: Final = 5
"""How many objects the text of a finding names; ``Finding.objects`` has all of them."""


class FindingSeverity(StrEnum):
    """An error prevents the move. A warning needs a decision. Information needs none."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "information"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know before a move.

    ``subject``: the object or setting, or how many of them. ``action``: what to do, empty if nothing. ``objects``: the
    names of all objects. ``script``: statements that do it, to be run where the action says.
    """

    severity: FindingSeverity
    code: str
    subject: str
    text: str
    action: str = ""
    objects: tuple[str, ...] = ()
    script: str = ""


ERROR: Final = FindingSeverity.ERROR
WARNING: Final = FindingSeverity.WARNING
INFO: Final = FindingSeverity.INFO


def subject_of(objects: Sequence[str], noun: str) -> str:
    """The name of a single object, or the number of several: ``12 tables``."""
    return objects[0] if len(objects) == 1 else counted(len(objects), noun)


def listed(objects: Sequence[str]) -> str:
    """The first objects, and how many more there are."""
    more = len(objects) - MOST_NAMED
    shown = ", ".join(objects[:MOST_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown
