"""OBEY, ALLOWNESTED and NOALLOWNESTED."""

from __future__ import annotations

from ggshell.cli.registry import command
from ggshell.cli.results import Message, Script
from ggshell.cli.session import DEEPEST_OBEY, Session, file_text
from ggshell.errors import StateError


@command("OBEY")
def obey(session: Session, *, file: str) -> Script:
    """Run the statements of a file; within an obey file only after ALLOWNESTED."""
    if session.obey_depth and not session.allow_nested:
        raise StateError("OBEY is not allowed in an obey file.", hint="use ALLOWNESTED to allow it, up to 16 levels")
    if session.obey_depth >= DEEPEST_OBEY:
        raise StateError(f"OBEY is nested deeper than {DEEPEST_OBEY} levels.", hint="check whether a file calls itself")
    path = session.home.resolve(file)
    return Script(str(path), file_text(path, "obey file"))


@command("ALLOWNESTED", True)
@command("NOALLOWNESTED", False)
def allow_nested(session: Session, allowed: bool) -> Message:
    """Set whether obey files may run other obey files."""
    session.allow_nested = allowed
    return Message((f"Nested OBEY is {'allowed' if allowed else 'not allowed'}.",))
