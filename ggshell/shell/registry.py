"""Which function carries out which action."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ggshell.errors import UsageError
from ggshell.shell.results import Result

Handler = Callable[..., Result]
MODULES = ("groups", "add", "lifecycle", "requests", "database", "trails", "manager", "credential", "view", "session")
_EARLY = {"INFO ALL": "groups"}
"""Actions whose module is loaded alone, since how soon they answer matters."""

_HANDLERS: dict[str, Handler] = {}


def command(*keys: str) -> Callable[[Handler], Handler]:
    """Register a function for actions; its keyword-only parameters are the names of their syntax lines."""

    def register(function: Handler) -> Handler:
        for key in keys:
            _HANDLERS[key] = function
        return function

    return register


def handler(key: str) -> Handler:
    """The function for an action.  Raises UsageError when it has a page but no function."""
    if key not in _HANDLERS:
        for name in [_EARLY[key]] if key in _EARLY else MODULES:
            importlib.import_module(f"ggshell.shell.commands.{name}")
    found = _HANDLERS.get(key)
    if found is None:
        raise UsageError(f"{key} is understood, but not carried out yet", code="GGS-00005")
    return found


def handlers() -> dict[str, Handler]:
    """Every registered action, all modules loaded."""
    for name in MODULES:
        importlib.import_module(f"ggshell.shell.commands.{name}")
    return dict(_HANDLERS)


def call(key: str, session: Any, arguments: dict[str, Any]) -> Result:
    """Carry out an action."""
    return handler(key)(session, **arguments)
