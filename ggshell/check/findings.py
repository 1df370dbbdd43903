"""Results of a check: one finding for each fault, with its place, and one result for each statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from ggshell.language.grammar import COMMANDS, Parsed
from ggshell.language.redaction import starred
from ggshell.language.unsupported import CODE, UnsupportedPart


class FindingSeverity(StrEnum):
    """The severity of a finding. A note is about something that this version does not support."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class FilePlace(NamedTuple):
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1


class CheckFinding(NamedTuple):
    """One fault.

    ``page``: the manual page to read; ``source``: the text with the fault; ``spot``: its position in that text, from 0.
    """

    place: FilePlace
    severity: FindingSeverity
    code: str
    message: str
    hint: str = ""
    page: str = ""
    source: str = ""
    spot: int = -1


class Checked(NamedTuple):
    """One statement or parameter, without secrets, and its findings."""

    place: FilePlace
    statement: str
    findings: tuple[CheckFinding, ...] = ()


class CheckReport(NamedTuple):
    """Everything that was checked, in the order of files and lines."""

    checked: tuple[Checked, ...]

    @property
    def findings(self) -> list[CheckFinding]:
        return [finding for each in self.checked for finding in each.findings]

    def count(self, severity: FindingSeverity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def failed(self, *, strict: bool) -> bool:
        """Whether the check failed (exit code 3); ``strict`` counts warnings as errors."""
        return bool(self.count(FindingSeverity.ERROR) or (strict and self.count(FindingSeverity.WARNING)))


def noted(
    found: Iterable[UnsupportedPart], parsed: Parsed, text: str, at: Callable[[int], FilePlace], kind: str = COMMANDS
) -> list[CheckFinding]:
    """Convert the notes about a statement or parameter to findings; ``at`` returns the place of a column."""
    return [
        CheckFinding(
            at(note.column),
            FindingSeverity.NOTE,
            CODE,
            note.about(parsed.key),
            page=parsed.page,
            source=starred(text, kind),
            spot=max(0, note.column - 1),
        )
        for note in found
    ]
