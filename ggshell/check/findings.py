"""What a check says: one finding a fault, with its place, and one result a statement."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is.  A note is about what this version does not carry out yet."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Place(NamedTuple):
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1


class Finding(NamedTuple):
    """One fault: ``page`` is the manual's page to read, ``source`` the text with the fault, ``spot`` its place there from 0."""

    place: Place
    severity: Severity
    code: str
    message: str
    hint: str = ""
    page: str = ""
    source: str = ""
    spot: int = -1


class Checked(NamedTuple):
    """One statement or parameter, without secrets, and what is wrong with it."""

    place: Place
    statement: str
    findings: tuple[Finding, ...] = ()


class Report(NamedTuple):
    """Everything that was checked, in the order of files and lines."""

    checked: tuple[Checked, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for each in self.checked for finding in each.findings]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def failed(self, *, strict: bool) -> bool:
        """Whether the exit code is 3; ``strict`` counts warnings as errors."""
        return bool(self.count(Severity.ERROR) or (strict and self.count(Severity.WARNING)))
