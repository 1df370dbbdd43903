"""From a Logdump command's key to its function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

from ggshell.logdump.answers import Answer

Action = Callable[..., Iterable[Answer]]
_F = TypeVar("_F", bound=Action)
ROOMS = ("going", "scanning", "switches", "filtering", "times", "telling", "comparing", "counting", "saving")
_ACTIONS: dict[str, tuple[Action, tuple[Any, ...]]] = {}


def action(key: str, *bound: Any) -> Callable[[_F], _F]:
    """Make a function carry out a syntax line; ``bound`` goes before the command's own arguments."""

    def register(function: _F) -> _F:
        _ACTIONS[key] = function, bound
        return function

    return register


def actions() -> dict[str, tuple[Action, tuple[Any, ...]]]:
    """Every command's function, with the values bound to it."""
    for room in ROOMS:
        import_module(f"ggshell.logdump.{room}")
    return _ACTIONS
