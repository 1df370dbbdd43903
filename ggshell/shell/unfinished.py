"""Statements that the manual understands and this version does not carry out.

A whole statement of that kind is accepted with a note, so that old scripts run on; a statement with such an option is refused,
since carrying out the rest of it would be something else than what was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.errors import UsageError
from ggshell.shell.results import Note
from ggshell.syntax.gaps import CODE, gap_of

if TYPE_CHECKING:
    from ggshell.syntax.parsed import Parsed


def unfinished(parsed: Parsed) -> Note | None:
    """The note for a statement that is accepted without being carried out, None for one that is.

    Raises UsageError when one of its options is not carried out.
    """
    gap = gap_of("commands", parsed)
    if gap is None:
        return None
    if gap.option:
        raise UsageError(gap.about(parsed.key), code=CODE, hint="leave it out")
    return Note(CODE, gap.about(parsed.key))
