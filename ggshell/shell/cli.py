"""The command line: which program is meant, and with which options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

from ggshell import __version__
from ggshell.errors import GgsError, UsageError
from ggshell.shell.render import Format

_HELP = """ggshell                        the shell (a session with prompts when its input is a pipe)
ggshell -c STATEMENTS          run statements, by newline or ;
ggshell FILE ...               run obey files, - is the standard input
ggshell paramfile FILE         run a file as a GGSCI session does
ggshell demo up|load|status|down

  --home DIR            home directory (GGSHELL_HOME, else the current folder)
  --format FORMAT       ggsci, table, vertical, csv, json, markdown
  --continue-on-error   go on after a statement that failed
  --echo                show each statement before its answer
  --auto-manager        START starts Manager when it does not run
  --no-shell            no SHELL and HOST
  --no-color            plain text
  --version
"""
_FLAGS = ("--continue-on-error", "--echo", "--no-color", "--no-shell", "--auto-manager")


class Options(NamedTuple):
    """What the command line says."""

    home: Path
    form: Format
    flags: frozenset[str]
    statements: str | None
    files: tuple[str, ...]


def _value(arguments: list[str], option: str) -> str:
    if not arguments:
        raise UsageError(f"{option} needs a value")
    return arguments.pop(0)


def parse_options(arguments: list[str]) -> Options:
    """Read the command line.  Raises UsageError."""
    home, form = os.environ.get("GGSHELL_HOME") or ".", Format.GGSCI
    flags, files, statements = set(), [], None
    rest = list(arguments)
    while rest:
        item = rest.pop(0)
        name, equals, value = item.partition("=")
        if equals and name in ("--home", "--format"):
            rest.insert(0, value)
            item = name
        if item == "--home":
            home = _value(rest, item)
        elif item == "--format":
            text = _value(rest, item).lower()
            if text not in [known.value for known in Format]:
                raise UsageError(f"{text} is no format", hint=", ".join(known.value for known in Format))
            form = Format(text)
        elif item == "-c":
            statements = _value(rest, item)
        elif item in _FLAGS:
            flags.add(item)
        elif item.startswith("-") and item != "-":
            raise UsageError(f"unknown option {item}", hint="ggshell --help")
        else:
            files.append(item)
    return Options(Path(home), form, frozenset(flags), statements, tuple(files))


def main(argv: list[str] | None = None) -> int:
    """The console script; its exit code: 0 done, 1 a statement failed, 2 wrong usage, 3 a statement cannot be understood."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] == "demo":
        from ggshell.demo.cli import main as demo

        return demo(arguments[1:])
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(_HELP)
        return 0
    if "--version" in arguments or arguments == ["-v"]:
        sys.stdout.write(f"ggshell {__version__}\n")
        return 0
    try:
        return _run(parse_options(arguments))
    except UsageError as error:
        sys.stderr.write(f"ggshell: {error}\n")
        return 2
    except GgsError as error:
        sys.stderr.write(f"ggshell: {error.code} {error}\n")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: Options) -> int:
    from ggshell.shell.batch import Interpreter, run_batch, standard_output
    from ggshell.shell.session import Session
    from ggshell.store.home import Home
    from ggshell.syntax.statement import split

    session = Session(Home(options.home))
    session.allow_shell = "--no-shell" not in options.flags
    session.auto_manager = "--auto-manager" in options.flags
    interpreter = Interpreter(session, options.form)
    files = list(options.files)
    if options.statements is None and (not files or files[0].lower() == "paramfile"):
        from ggshell.shell.repl import run_interactive, run_piped

        if files:
            if len(files) != 2:
                raise UsageError("paramfile needs one file")
            with _open(Path(files[1])) as source:
                return run_piped(interpreter, source)
        if sys.stdin.isatty():
            return run_interactive(interpreter, Path.home() / ".ggshell_history")
        return run_piped(interpreter, sys.stdin)
    statements = split(options.statements) if options.statements is not None else []
    for file in files:
        if file == "-":
            statements += split(sys.stdin.read(), "-")
        else:
            with _open(Path(file)) as source:
                statements += split(source.read(), file)
    go_on = "--continue-on-error" in options.flags
    return run_batch(interpreter, statements, standard_output, go_on=go_on, echo="--echo" in options.flags)


def _open(path: Path) -> TextIO:
    try:
        return path.open(errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
