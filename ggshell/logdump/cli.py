"""``ggshell logdump [TRAILFILE]``: run a session from the terminal, from a heredoc, or from ``-c`` statements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ggshell import __version__
from ggshell.clock import SystemClock
from ggshell.errors import UsageError
from ggshell.logdump.progress import Progress
from ggshell.logdump.session import Reader, Talk
from ggshell.logdump.state import LogdumpSession
from ggshell.terminal import redraws_lines

USAGE = """usage: ggshell logdump [--format text|json] [--no-shell] [-c STATEMENT]... [TRAILFILE]

Shows trail files record by record. Without -c, statements are read from the terminal or standard input. HELP lists them.
"""


class LogdumpOptions(NamedTuple):
    """The options of the command line; ``shell``: X may run operating system commands."""

    as_json: bool = False
    shell: bool = True
    statements: tuple[str, ...] = ()
    file: str = ""


def main(
    arguments: Sequence[str],
    *,
    read: Reader | None = None,
    terminal: Callable[[LogdumpSession], Reader] | None = None,
    home: Path | None = None,
) -> int:
    """Run Logdump and return its exit code.

    The code is 0, or 1 if the file cannot be opened or a ``-c`` statement failed. ``read``: reads lines instead of
    standard input; ``terminal``: creates the line editor at a terminal; ``home``: the home directory with the wallet
    (None: GGSHELL_HOME, or the current directory).
    """
    options = _options(list(arguments))
    if options is None:
        sys.stdout.write(USAGE)
        return 0
    clock = SystemClock()
    session = LogdumpSession(clock, Progress(clock) if redraws_lines(sys.stderr) else None, home)
    session.shell = options.shell
    try:
        if options.statements:
            talk = Talk(session, as_json=options.as_json)
            if options.file and not talk.say(f"OPEN {quoted(options.file)}"):
                return 1
            return int(sum(not talk.say(text) for text in options.statements) > 0)
        if read is None and terminal is not None and sys.stdin.isatty() and redraws_lines(sys.stdout):
            read = terminal(session)
        return _converse(session, options, read or _typed)
    finally:
        session.stop_log()
        session.close()


def quoted(file: str) -> str:
    """Return a file name quoted for a statement."""
    return f'"{file}"' if '"' not in file else f"'{file}'"


def _options(words: list[str]) -> LogdumpOptions | None:
    """Parse the command line; None if help is requested. Raises UsageError."""
    found, statements, files = LogdumpOptions(), list[str](), list[str]()
    while words:
        word, equals, value = words.pop(0).partition("=")
        if word in ("--help", "-h"):
            return None
        if word == "--no-shell":
            found = found._replace(shell=False)
        elif word in ("--format", "-c") and (equals or words):
            given = value if equals else words.pop(0)
            if word == "-c":
                statements += [line for line in given.splitlines() if line.strip()]
            elif given in ("text", "json", "ggsci"):
                found = found._replace(as_json=given == "json")
            else:
                raise UsageError(f"logdump has no format {given}", hint="text or json")
        elif word.startswith("-"):
            raise UsageError(f"logdump does not take {word}", hint="ggshell logdump --help")
        else:
            files.append(f"{word}{equals}{value}")
    if len(files) > 1:
        raise UsageError("logdump takes one file", hint="ggshell logdump --help")
    return found._replace(statements=tuple(statements), file=files[0] if files else "")


def _converse(session: LogdumpSession, options: LogdumpOptions, read: Reader) -> int:
    """Run a session: banner, prompts, statements. Return 1 if the file cannot be opened, else 0."""
    talk = Talk(session, as_json=options.as_json, read=read)
    if not options.as_json:
        sys.stdout.write(f"\nggshell Log File Dump Utility\nVersion {__version__}\n\n\n")
    if options.file and not talk.say(f"OPEN {quoted(options.file)}"):
        return 1
    talk.converse(read)
    return 0


def _typed(shown: str) -> str | None:
    """Read a line of standard input; the prompt is printed even if the input is not a terminal."""
    sys.stdout.write(shown)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stdout.write("\n" if shown else "")
        return None
    return line.rstrip("\n")
