"""Notes about what this version does not carry out, at the place of the option that they are about."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.check.findings import Finding, Place, Severity
from ggshell.check.secrets import masked
from ggshell.syntax.gaps import CODE, changes_rows, keeps_rows
from ggshell.syntax.grammar import PARAMETERS
from ggshell.syntax.parsed import Parsed


def gaps(kind: str, parsed: Parsed, text: str, at: Callable[[int], Place]) -> list[Finding]:
    """The notes for a statement or a parameter; ``at`` gives the place of a column."""
    found = []
    for note in parsed.notes:
        subject = note.option.split()[0] if note.option else parsed.page
        refused = kind == PARAMETERS and changes_rows(subject) and not keeps_rows(parsed.page)
        hint = "no process starts with it: other rows would arrive" if refused else ""
        place = at(note.column)
        about = note.about(parsed.key)
        found.append(
            Finding(place, Severity.NOTE, CODE, about, hint, parsed.page, masked(text), max(0, note.column - 1))
        )
    return found
