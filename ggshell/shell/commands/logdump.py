"""LOGDUMP within a session."""

from __future__ import annotations

from ggshell.errors import UsageError
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session


@command("LOGDUMP")
def logdump(session: Session, *, file: str = "") -> Message:
    """A session of its own at the terminal; what files are named lies in the home.  Raises UsageError elsewhere."""
    if not session.interactive:
        raise UsageError(
            "LOGDUMP needs somebody at the terminal", hint="ggshell logdump -c STATEMENT FILE, or a heredoc"
        )
    from ggshell.logdump.cli import main
    from ggshell.shell.repl_dump import terminal

    path = session.home.root / file if file else None
    words = [*([] if session.options.shell else ["--no-shell"]), *([str(path)] if path is not None else [])]
    main(words, terminal=terminal, home=session.home.root)
    return Message()
