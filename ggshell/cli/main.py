"""The console script: runs a batch, a GGSCI session, the interactive shell, check, Logdump, the demo, or a process."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.cli.config import default_home
from ggshell.cli.options import DONE, FAILED, INTERRUPTED, USAGE, USAGE_ERROR, Options, parse_options
from ggshell.errors import OUT_OF_MEMORY, DiskError, GgsError, UsageError
from ggshell.files import close_to_others

if TYPE_CHECKING:
    from ggshell.cli.outcome import Outcome
    from ggshell.cli.session import Session
    from ggshell.logdump.state import LogdumpSession as DumpSession


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ggshell`` and return its exit code.

    The codes are 0 (done), 1 (a statement failed), 2 (wrong usage), 3 (a syntax error; nothing was run) and 130
    (interrupted).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    program = Path(sys.argv[0]).name if argv is None else ""  # links of these names start Logdump and the Admin Client
    if program == "logdump":
        arguments.insert(0, "logdump")
    _open_streams()
    close_to_others()
    try:
        return _main(arguments, program)
    except UsageError as error:
        sys.stderr.write(f"ggshell: {error}\n")
        return USAGE_ERROR
    except GgsError as error:
        sys.stderr.write(f"ERROR: {error.code}  {error}\n")
        return FAILED
    except MemoryError:
        sys.stderr.write(f"ERROR: GGS-00807  {OUT_OF_MEMORY}\n")
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe (| head)
        _discard_output()
        return FAILED
    except OSError as error:
        if error.errno not in _WRITE_ERRORS or error.filename is not None:
            raise
        _discard_output()
        sys.stderr.write(f"ERROR: {DiskError.code}  cannot write to standard output: {error.strerror}\n")
        return FAILED


_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""The errors of a write to an open file."""


def _main(arguments: list[str], program: str) -> int:
    """Run the command line and write its output. Raises UsageError if standard output is closed, and OSError."""
    if sys.stdout is None:
        raise UsageError("standard output is closed", hint="redirect it to a file or to /dev/null")
    code = _subcommand(arguments[0].lower(), arguments[1:]) if arguments else None
    code = _run(_options(arguments, program)) if code is None else code
    sys.stdout.flush()
    return code


def _open_streams() -> None:
    """Replace closed standard input and standard error: a file opened later would have their numbers."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as above


def _discard_output() -> None:
    """Send the rest of the output nowhere, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _options(arguments: list[str], program: str) -> Options:
    return parse_options(arguments)._replace(admin_client=program == "adminclient")


def _subcommand(name: str, words: list[str]) -> int | None:
    """Run a subcommand that needs no home. None for any other word."""
    if name == "demo":
        from ggshell.demo.cli import main as demo

        return demo(words, home=_default_home(words))
    if name == "move":
        from ggshell.cli.batch import obey
        from ggshell.move.cli import main as move

        return move(words, home=_default_home(words), obey=obey)
    if name == "check":
        from ggshell.check.cli import main as check

        return check(words)
    if name == "logdump":
        from ggshell.logdump.cli import main as logdump

        return logdump(words, terminal=_dump_terminal, home=_default_home(words))
    if name == "completion":
        from ggshell.cli.shell_completion import script

        sys.stdout.write(script(words))
        return DONE
    if name == "man":
        if words:
            raise UsageError("man does not take arguments", hint="ggshell man, or ggshell -c 'HELP ADD EXTRACT'")
        from ggshell.cli.manual import man_page

        sys.stdout.write(man_page())
        return DONE
    return None


def _default_home(words: list[str]) -> Path | None:
    """The home of a subcommand without an option for it. The help needs none, and is shown if the file is not valid."""
    return None if {"--help", "-h"} & {*words} else default_home(os.environ)


def _dump_terminal(session: DumpSession) -> Callable[[str], str | None]:
    from ggshell.cli.repl_dump import terminal  # a heredoc needs no line editor

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
        from ggshell.cli import foreground

        return foreground.run(options.home, options.process)
    from ggshell.cli.session import Session

    session = Session(options)
    try:
        return _with_session(session)
    finally:
        session.close()


def _with_session(session: Session) -> int:
    options = session.options
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not options.paramfile
    if options.connect and (options.commands or options.files or not at_terminal):
        from ggshell.cli.connecting import connect_at_start

        connected = connect_at_start(session)
        if connected.failed:
            return _not_connected(session, connected)
    if options.commands or options.files:
        from ggshell.cli import batch

        sources = [("", text) for text in options.commands] or [batch.read_source(name) for name in options.files]
        return batch.run(session, sources)
    from ggshell.cli import conversation

    if options.paramfile:
        from ggshell.cli.batch import read_source

        return conversation.run_lines(session, iter(read_source(options.paramfile)[1].splitlines()))
    if at_terminal:
        from ggshell.cli import repl

        return repl.run(session)
    return conversation.run_lines(session, (line.rstrip("\n") for line in iter(sys.stdin.readline, "")))


def _not_connected(session: Session, outcome: Outcome) -> int:
    """Show why ``--connect`` failed, as JSON if that is the format, and return the exit code. Raises GgsError otherwise."""
    error = outcome.errors[0]
    if session.options.format != "json":
        raise error
    from ggshell.cli.output.tables import json_line

    sys.stdout.write(json_line(outcome))
    return USAGE_ERROR if isinstance(error, UsageError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
