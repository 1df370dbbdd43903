"""OBEY and its nesting."""

from __future__ import annotations

from ggshell.errors import StateError
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Script
from ggshell.shell.session import DEEPEST_OBEY, Session, file_text


@command("OBEY")
def obey(session: Session, *, file: str) -> Script:
    """The statements of a file, to be run now; from within another such file only after ALLOWNESTED."""
    if session.obey_depth and not session.allow_nested:
        raise StateError("OBEY within an obey file is not allowed.", hint="ALLOWNESTED allows it, to 16 levels")
    if session.obey_depth >= DEEPEST_OBEY:
        raise StateError(f"OBEY is nested deeper than {DEEPEST_OBEY} levels.", hint="does a file call itself?")
    path = session.home.resolve(file)
    return Script(str(path), file_text(path, "obey file"))


@command("ALLOWNESTED", True)
@command("NOALLOWNESTED", False)
def allow_nested(session: Session, allowed: bool) -> Message:
    """Whether obey files may call others."""
    session.allow_nested = allowed
    return Message((f"Nested OBEY is {'allowed' if allowed else 'not allowed'}.",))
