"""The functions of Logdump's commands: only the module that a command needs is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ggshell.language.handlers import Handlers
from ggshell.logdump.answers import Answer

Action = Callable[..., Iterable[Answer]]

ACTIONS: Handlers[Action] = Handlers("ggshell.logdump", Path(__file__).parent, "action")
action = ACTIONS.register
