"""LOGDUMP in the shell."""

from __future__ import annotations

from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.errors import UsageError


@command("LOGDUMP")
def logdump(session: Session, *, file: str = "") -> Message:
    """Run a Logdump session at the terminal; file names are relative to the home.

    Raises UsageError without a terminal.
    """
    if not session.interactive:
        raise UsageError(
            "LOGDUMP requires an interactive terminal", hint="use ggshell logdump -c STATEMENT FILE, or a heredoc"
        )
    from ggshell.cli.repl_dump import terminal
    from ggshell.logdump.cli import main

    path = session.home.root / file if file else None
    words = [*([] if session.options.shell else ["--no-shell"]), *([str(path)] if path is not None else [])]
    main(words, terminal=terminal, home=session.home.root)
    return Message()
