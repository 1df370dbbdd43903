"""The options and exit codes of the command line, which is parsed without a library to keep the start-up time short."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ggshell.cli.config import FORMATS, read_config
from ggshell.errors import UsageError

DONE, FAILED, USAGE_ERROR, SYNTAX_ERROR, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes."""

ENGINES = ("auto", "local", "spark")
USAGE = """usage: ggshell [options]                      interactive shell; a GGSCI session if the input is not a terminal
       ggshell [options] -c STATEMENTS        run statements, separated by newlines or ;
       ggshell [options] FILE...              run obey files; - is standard input
       ggshell [options] paramfile FILE       run a GGSCI session that reads a file
       ggshell extract paramfile FILE [reportfile FILE]   run an Extract in the foreground (replicat: a Replicat)
       ggshell service                        run the service (REST API, metrics) in the foreground
       ggshell check FILE...                  check obey and parameter files without running anything
       ggshell logdump [TRAILFILE]            show trail files record by record
       ggshell demo up|load|status|down       run two embedded databases and a workload
       ggshell move STEP                      move a database to another server (ggshell move --help)
       ggshell completion bash|zsh            print the completion script for bash or zsh
       ggshell man                            print the man page: ggshell man | man -l -

options:
  --connect URL         work on the home of a service (CONNECT); the password comes from GGSHELL_PASSWORD or ADD CREDENTIALS
  --user USER           user, or name of stored credentials, for --connect
  --deployment NAME     deployment for --connect
  --home DIR            home directory (default: GGSHELL_HOME, the configuration file or the current folder)
  --format FORMAT       output format: ggsci (default), table, vertical, csv, json, markdown
  --engine ENGINE       engine for queries on trails and lag: auto (default), local, spark
  --continue-on-error   continue after a failed statement and exit with code 1 at the end
  --echo                show each statement before its result
  --auto-manager        let START also start Manager if it is not running
  --no-shell            refuse SHELL, HOST and X of Logdump, which run operating system commands
  --no-color            turn off colors in the shell
  --version             show the version
  --help                show this text

Defaults for home, format, timing, color and key_bindings: ~/.config/ggshell/config.toml (HELP CONFIGURATION).
"""


class Options(NamedTuple):
    """The options of the command line.

    ``commands``: the texts of ``-c``; ``files``: obey files; ``paramfile``: the file of a GGSCI session; ``process``:
    the arguments of an Extract, a Replicat or the service in the foreground. ``connect``, ``user`` and ``deployment``: the
    service to connect to. ``admin_client``: the program was started as ``adminclient`` and has no home of its own. ``timing``
    and ``key_bindings`` come from the configuration file.
    """

    home: str = "."
    format: str = "ggsci"
    engine: str = ""
    continue_on_error: bool = False
    echo: bool = False
    color: bool = True
    timing: bool = False
    key_bindings: str = "emacs"
    shell: bool = True
    auto_manager: bool = False
    connect: str = ""
    user: str = ""
    deployment: str = ""
    admin_client: bool = False
    version: bool = False
    help: bool = False
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    paramfile: str = ""
    process: tuple[str, ...] = ()


FLAGS: dict[str, tuple[str, bool]] = {
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
VALUED = {
    "--connect": "connect",
    "--user": "user",
    "--deployment": "deployment",
    "--home": "home",
    "--format": "format",
    "--engine": "engine",
    "-c": "commands",
}


def parse_options(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ, *, terminal: bool | None = None
) -> Options:
    """Parse the command line's arguments and add the user's defaults. Raises UsageError.

    ``terminal``: whether the output goes to a terminal (None: look at standard output).
    """
    found: dict[str, object] = {"home": environment["GGSHELL_HOME"]} if environment.get("GGSHELL_HOME") else {}
    commands: list[str] = []
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            words += rest
            break
        if name in VALUED and (equals or name == word):
            if not equals and not rest:
                raise UsageError(f"{name} requires a value", hint="ggshell --help")
            given = value if equals else rest.pop(0)
            if name == "-c":
                commands.append(given)
            else:
                found[VALUED[name]] = given
        elif word in FLAGS:
            field, setting = FLAGS[word]
            found[field] = setting
        elif word.startswith("-") and word != "-":
            raise UsageError(f"{word} is not a valid option", hint="ggshell --help")
        else:
            words.append(word)
    if not {"help", "version"} & found.keys():
        found = {**read_config(environment, terminal=sys.stdout.isatty() if terminal is None else terminal), **found}
    return _checked(Options(**found, commands=tuple(commands)), words)  # type: ignore[arg-type]


def _checked(options: Options, words: list[str]) -> Options:
    if options.format not in FORMATS:
        raise UsageError(f"{options.format} is not a valid format", hint=f"use {', '.join(FORMATS)}")
    if options.engine and options.engine not in ENGINES:
        raise UsageError(f"{options.engine} is not a valid engine", hint=f"use {', '.join(ENGINES)}")
    if (options.user or options.deployment) and not options.connect:
        raise UsageError("--user and --deployment require --connect", hint="ggshell --connect URL --user USER")
    if [word.lower() for word in words] == ["service"]:
        return options._replace(process=("service",))
    if words and words[0].lower() == "service":
        raise UsageError(f"ggshell service does not take {words[1]}", hint="ggshell --home DIR service")
    if words and words[0].lower() in ("extract", "replicat"):
        return options._replace(process=tuple(words))
    if words and words[0].lower() == "paramfile":
        if len(words) != 2:
            raise UsageError("paramfile requires exactly one file", hint="ggshell paramfile FILE")
        return options._replace(paramfile=words[1])
    if words and options.commands:
        raise UsageError("-c and files cannot be used together", hint="ggshell --help")
    return options._replace(files=tuple(words))
