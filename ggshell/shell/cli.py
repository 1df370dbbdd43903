"""The console script: options, then a batch, a GGSCI session, the shell, or the demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.errors import GgsError, UsageError
from ggshell.shell.exit_codes import DONE, FAILED, INTERRUPTED, USAGE_ERROR
from ggshell.shell.options import USAGE, Options, parse_options

if TYPE_CHECKING:
    from ggshell.logdump.session import Session as DumpSession
    from ggshell.shell.session import Session


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ggshell``; its exit code: 0 done, 1 a statement failed, 2 wrong usage, 3 a syntax error, nothing was run."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and Path(sys.argv[0]).name == "logdump":  # a link of that name is that program
        arguments.insert(0, "logdump")
    try:
        if arguments and arguments[0].lower() == "demo":
            from ggshell.demo.cli import main as demo

            return demo(arguments[1:])
        if arguments and arguments[0].lower() == "check":
            from ggshell.check.cli import main as check

            return check(arguments[1:])
        if arguments and arguments[0].lower() == "logdump":
            from ggshell.logdump.cli import main as logdump

            return logdump(arguments[1:], terminal=_dump_terminal)
        return _run(parse_options(arguments))
    except UsageError as error:
        sys.stderr.write(f"ggshell: {error}\n")
        return USAGE_ERROR
    except GgsError as error:
        sys.stderr.write(f"ERROR: {error.code}  {error}\n")
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (| head): nothing to say, and nothing more may be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _dump_terminal(session: DumpSession) -> Callable[[str], str | None]:
    from ggshell.shell.repl_dump import terminal  # a heredoc needs no line editor

    return terminal(session)


def _run(options: Options) -> int:
    if options.help:
        sys.stdout.write(USAGE)
        return DONE
    if options.version:
        from ggshell import __version__

        sys.stdout.write(f"ggshell {__version__}\n")
        return DONE
    if options.process:
        from ggshell.shell import by_hand

        return by_hand.run(options.home, options.process)
    from ggshell.shell.session import Session

    session = Session(options)
    try:
        return _with_session(session)
    finally:
        session.close()


def _with_session(session: Session) -> int:
    options = session.options
    if options.commands or options.files:
        from ggshell.shell import batch

        sources = [("", text) for text in options.commands] or [batch.read_source(name) for name in options.files]
        return batch.run(session, sources)
    from ggshell.shell import conversation

    if options.paramfile:
        from ggshell.shell.batch import read_source

        return conversation.run_lines(session, iter(read_source(options.paramfile)[1].splitlines()))
    if sys.stdin.isatty() and sys.stdout.isatty():
        from ggshell.shell import repl

        return repl.run(session)
    return conversation.run_lines(session, (line.rstrip("\n") for line in iter(sys.stdin.readline, "")))


if __name__ == "__main__":
    sys.exit(main())
