"""Notes about what this version does not carry out, at the place of the option that they are about."""

from __future__ import annotations

import re

from ggshell.check.findings import Finding, Place, Severity
from ggshell.syntax.gaps import CODE, gap_of
from ggshell.syntax.grammar import Parsed


def gap(kind: str, parsed: Parsed, text: str, place: Place) -> Finding | None:
    """The note for a statement or a parameter that is not carried out, or not with one of its options; None for others."""
    found = gap_of(kind, parsed)
    if found is None:
        return None
    at = place
    if found.option:
        match = re.search(rf"(?i)\b{re.escape(found.option.split()[0])}\b", text)
        at = place._replace(column=place.column + match.start()) if match else place
    return Finding(at, Severity.NOTE, CODE, found.about(parsed.key), page=parsed.page)
