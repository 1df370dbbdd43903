"""Notes about what the manual knows and this version does not carry out: ``Status`` and ``Not yet`` of pages."""

from __future__ import annotations

import re

from ggshell.check.findings import Finding, Place, Severity
from ggshell.syntax import pages
from ggshell.syntax.grammar import Parsed
from ggshell.syntax.tree import python_name

CODE = "GGS-00103"


def gap(kind: str, parsed: Parsed, text: str, place: Place) -> Finding | None:
    """The note for a statement or a parameter that is not carried out, or not with this option; None for all others."""
    path = pages.index(kind)[parsed.page]
    status = pages.read(path).facts.get("Status", "")
    if status:
        return _note(place, f"{parsed.key} is accepted, not carried out: {status}", parsed.page)
    for line in pages.section(path, "Not yet"):
        subject, _, reason = line.partition(":")
        subject = subject.strip().upper()
        if subject == parsed.key:
            return _note(place, f"{parsed.key} is accepted, not carried out: {reason.strip()}", parsed.page)
        if parsed.args.get(python_name(subject.split()[0])):
            match = re.search(rf"(?i)\b{re.escape(subject.split()[0])}\b", text)
            at = place._replace(column=place.column + match.start()) if match else place
            return _note(at, f"{subject} is not carried out: {reason.strip()}", parsed.page)
    return None


def _note(place: Place, message: str, page: str) -> Finding:
    return Finding(place, Severity.NOTE, CODE, message, page=page)
