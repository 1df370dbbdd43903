"""The functions that carry out syntax lines, found by the decorator in their source.

There is no table of keys: the module of a key is the file of the package whose source has ``@decorator("KEY"``. To
search the sources takes less than a millisecond; to import them all takes as long as a whole start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from ggshell.errors import UsageError

_H = TypeVar("_H", bound=Callable[..., Any])
_F = TypeVar("_F", bound=Callable[..., Any])


def unavailable(what: str) -> UsageError:
    """The error for a statement that the manual describes and this version does not support."""
    return UsageError(f"{what} is not available in this version.", code="GGS-00103", hint="leave it out")


class Handlers(Generic[_H]):
    """The handlers in the modules of a package, each by the key of its syntax line.

    ``decorator``: the name under which the modules use ``register``.
    """

    def __init__(self, package: str, folder: Path, decorator: str) -> None:
        self._package = package
        self._folder = folder
        self._decorator = decorator
        self._bound: dict[str, tuple[_H, tuple[Any, ...]]] = {}

    def register(self, key: str, *values: Any) -> Callable[[_F], _F]:
        """Register a function as the handler of a syntax line; ``values`` precede the statement's own arguments."""

        def register(function: _F) -> _F:
            self._bound[key] = (function, values)  # type: ignore[assignment]
            return function

        return register

    def module_of(self, key: str) -> str:
        """The name of the module that handles a key; empty if none does. Nothing is imported."""
        return next(self._modules_with(f'@{self._decorator}("{key}"'), "")

    def find(self, key: str) -> tuple[_H, tuple[Any, ...]]:
        """Import and return the handler of a key, with the values bound to it. Raises UsageError if this version has none."""
        if key not in self._bound:
            module = self.module_of(key)
            if not module:
                raise unavailable(key)
            import_module(f"{self._package}.{module}")
        return self._bound[key]

    def load_all(self) -> dict[str, tuple[_H, tuple[Any, ...]]]:
        """Import and return every handler, for tests."""
        for module in self._modules_with(f'@{self._decorator}("'):
            import_module(f"{self._package}.{module}")
        return self._bound

    def _modules_with(self, text: str) -> Iterator[str]:
        wanted = text.encode()
        return (file.stem for file in sorted(self._folder.glob("*.py")) if wanted in file.read_bytes())
