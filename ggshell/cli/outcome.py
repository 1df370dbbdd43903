"""The outcome of a statement: its result, its errors and its notes."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.cli.results import Note, Result
from ggshell.errors import GgsError
from ggshell.language.unsupported import CODE


class Outcome(NamedTuple):
    """The outcome of a statement.

    ``statement`` is without secrets; ``notes`` are warnings, which do not make it a failure.
    """

    statement: str
    result: Result | None = None
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return bool(self.errors)

    @property
    def not_supported(self) -> bool:
        """Whether the statement was accepted with a note, but not carried out."""
        return self.result is None and any(note.code == CODE for note in self.notes)
