"""The interactive shell, and the same session read from a pipe."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TextIO

from ggshell.process.report import masked
from ggshell.shell.batch import Interpreter, standard_output
from ggshell.shell.prompt import banner, prompt
from ggshell.shell.session import Session
from ggshell.syntax.statement import split


def recall(session: Session, line: str) -> str | None:
    """``!``, ``! n``, ``! -n`` and ``! text``: a statement of the history; None when the line is another one."""
    match = re.fullmatch(r"\s*!\s*(.*)", line)
    if not match or not session.history:
        return None
    wanted = match[1].strip()
    if not wanted:
        return session.history[-1]
    if re.fullmatch(r"-?\d+", wanted):
        number = int(wanted)
        place = number - 1 if number > 0 else len(session.history) + number
        return session.history[place] if 0 <= place < len(session.history) else None
    return next((text for text in reversed(session.history) if text.lower().startswith(wanted.lower())), None)


def _run_line(interpreter: Interpreter, line: str) -> None:
    repeated = recall(interpreter.session, line)
    if repeated is not None:
        standard_output(repeated + "\n")
    for statement in split(repeated or line):
        interpreter.run(statement)


def run_piped(interpreter: Interpreter, source: TextIO) -> int:
    """A heredoc: banner, prompts and answers as in a terminal; an error does not end it."""
    session = interpreter.session
    standard_output(banner())
    number = 1
    standard_output(prompt(session, number))
    waiting = ""
    for line in source:
        joined = waiting + line.rstrip("\n")
        if joined.rstrip().endswith("&"):
            waiting = joined.rstrip()[:-1] + " "
            continue
        waiting = ""
        _run_line(interpreter, joined)
        number += 1
        if session.leaving:
            break
        standard_output(prompt(session, number))
    standard_output("\n")
    return 0


def run_interactive(interpreter: Interpreter, history: Path) -> int:
    """A terminal: prompt-toolkit with history; Ctrl-C cancels a line or a statement, Ctrl-D leaves."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    class Remembered(FileHistory):
        """History on disk without secrets."""

        def store_string(self, string: str) -> None:
            super().store_string(masked(string))

    session: Session = interpreter.session
    standard_output(banner())
    asking: PromptSession[str] = PromptSession(history=Remembered(str(history)))
    number = 1
    while not session.leaving:
        try:
            line = asking.prompt(prompt(session, number))
            while line.rstrip().endswith("&"):
                line = line.rstrip()[:-1] + " " + asking.prompt("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        _run_line(interpreter, line)
        number += 1
    sys.stdout.write("\n")
    return 0
