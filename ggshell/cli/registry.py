"""The handlers of statements: only the module that a statement needs is imported.

A handler is a function ``handler(session, [bound values,] *, names of its syntax lines) -> Result``. The decorator
``@command("ADD EXTRACT")`` binds it to the key of a syntax line of the manual, with values that distinguish the lines of
one handler. Tests check that the names match the lines.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ggshell.cli.results import Result
from ggshell.language.handlers import Handlers

Handler = Callable[..., Result]

COMMANDS: Handlers[Handler] = Handlers("ggshell.cli.commands", Path(__file__).with_name("commands"), "command")
command = COMMANDS.register
