"""The command line's options, read by hand: start-up time is a feature."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ggshell.errors import UsageError

ENGINES = ("auto", "local", "spark")
FORMATS = ("ggsci", "table", "vertical", "csv", "json", "markdown")
USAGE = """usage: ggshell [options]                      the shell; with input that is no terminal: a GGSCI session
       ggshell [options] -c STATEMENTS        statements, by newline or ;
       ggshell [options] FILE...              run obey files; - is standard input
       ggshell [options] paramfile FILE       a GGSCI session that reads from a file
       ggshell extract paramfile FILE [reportfile FILE]   an Extract in the foreground (replicat: a Replicat)
       ggshell check FILE...                  check obey and parameter files without running anything
       ggshell logdump [TRAILFILE]            look at trail files record by record
       ggshell demo up|load|status|down       two embedded databases and a workload

options:
  --home DIR            the home directory (else GGSHELL_HOME, else the current folder)
  --format FORMAT       ggsci (default), table, vertical, csv, json, markdown
  --engine ENGINE       who answers questions about trails and lag: auto (default), local, spark
  --continue-on-error   go on behind a statement that fails; exit code 1 at the end
  --echo                show each statement before its answer
  --auto-manager        START starts Manager when it does not run
  --no-shell            SHELL, HOST and ! commands of the system are refused
  --no-color            no colours in the shell
  --version, --help
"""


class Options(NamedTuple):
    """What the command line asks for.  ``commands``: the texts of ``-c``; ``files``: obey files, or the paramfile;
    ``process``: a group started by hand."""

    home: str = "."
    format: str = "ggsci"
    engine: str = ""
    continue_on_error: bool = False
    echo: bool = False
    color: bool = True
    shell: bool = True
    auto_manager: bool = False
    version: bool = False
    help: bool = False
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    paramfile: str = ""
    process: tuple[str, ...] = ()


_FLAGS: dict[str, tuple[str, bool]] = {
    "--continue-on-error": ("continue_on_error", True),
    "--echo": ("echo", True),
    "--no-color": ("color", False),
    "--no-shell": ("shell", False),
    "--auto-manager": ("auto_manager", True),
    "--version": ("version", True),
    "-v": ("version", True),
    "-V": ("version", True),
    "--help": ("help", True),
    "-h": ("help", True),
}
_VALUED = {"--home": "home", "--format": "format", "--engine": "engine", "-c": "commands"}


def parse_options(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """Options from the arguments.  Raises UsageError."""
    found: dict[str, object] = {"home": environment.get("GGSHELL_HOME") or "."}
    commands: list[str] = []
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            words += rest
            break
        if name in _VALUED and (equals or name == word):
            if not equals and not rest:
                raise UsageError(f"{name} needs a value", hint="ggshell --help")
            given = value if equals else rest.pop(0)
            if name == "-c":
                commands.append(given)
            else:
                found[_VALUED[name]] = given
        elif word in _FLAGS:
            field, setting = _FLAGS[word]
            found[field] = setting
        elif word.startswith("-") and word != "-":
            raise UsageError(f"unknown option {word}", hint="ggshell --help")
        else:
            words.append(word)
    return _checked(Options(**found, commands=tuple(commands)), words)  # type: ignore[arg-type]


def _checked(options: Options, words: list[str]) -> Options:
    if options.format not in FORMATS:
        raise UsageError(f"unknown format {options.format}", hint=f"one of {', '.join(FORMATS)}")
    if options.engine and options.engine not in ENGINES:
        raise UsageError(f"unknown engine {options.engine}", hint=f"one of {', '.join(ENGINES)}")
    if len(words) > 1 and words[0].lower() in ("extract", "replicat"):
        return options._replace(process=tuple(words))
    if words and words[0].lower() == "paramfile":
        if len(words) != 2:
            raise UsageError("paramfile takes one file", hint="ggshell paramfile FILE")
        return options._replace(paramfile=words[1])
    if words and options.commands:
        raise UsageError("either -c or files, not both", hint="ggshell --help")
    return options._replace(files=tuple(words))
