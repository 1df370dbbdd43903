"""Checks what a parameter file names when it is written through the service.

The rules depend on who wrote a file. Paths that the administrator of the machine wrote stay allowed when a client reads
the file, changes other lines, and writes it back: only what a request adds is checked. A file that others include can
complete their lines, so these are checked with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.errors import HttpError, UsageError
from ggshell.home.users import Role
from ggshell.parameters.lines import statements
from ggshell.parameters.source_lines import Reader, reader_of
from ggshell.service.named_places import PARAMETERS, PlaceUse, require_use
from ggshell.service.sign_in import required

if TYPE_CHECKING:
    from ggshell.home.home import Home
    from ggshell.service.call import Call

_SERVICE: Final = "service.prm"


class _Argument(NamedTuple):
    """An argument that names something: the key of its parameter, its name and its value."""

    key: str
    name: str
    value: Any


class _Reached(Exception):  # noqa: N818 - not an error: it ends the search for a file
    """The file that is about to be written is the one that an INCLUDE names."""


def require_named(call: Call, path: Path, text: str) -> None:
    """Check what the new text of a parameter file names, also through the files that include it.

    Raises HttpError 403, UsageError for a file with secrets.
    """
    before = _text_of(path)
    _require_added(call, _arguments(before, path), _arguments(text, path))
    for file in _including(call.home, path):
        content = _text_of(file)
        old, new = _Overlay(file, path, before), _Overlay(file, path, text)
        arguments = _arguments(content, file, old.read), _arguments(content, file, new.read)
        if new.used and file.name.lower() == _SERVICE:
            required(call.principal, Role.SECURITY)
        if new.used:
            _require_added(call, *arguments)


def _require_added(call: Call, before: list[_Argument], after: list[_Argument]) -> None:
    for argument in after:
        if argument in before:
            continue
        use = PARAMETERS[argument.key, argument.name]
        if use is PlaceUse.SECURED and call.principal.role < Role.SECURITY:
            raise HttpError(403, f"{argument.key} requires the role {Role.SECURITY.title}")
        require_use(call.bounds, call.principal, use, argument.value, argument.key)


def _arguments(text: str, path: Path, read: Reader | None = None) -> list[_Argument]:
    """Return the arguments of a text that name something, of all kinds of processes; invalid statements have none."""
    found, _ = statements(text, path, "", read or reader_of(path))
    return [
        _Argument(each.parsed.key, name, value)
        for each in found
        if each.parsed is not None
        for name, value in each.parsed.args.items()
        if (each.parsed.key, name) in PARAMETERS
    ]


class _Overlay:
    """Reads the files that a file includes, with one of them replaced by another text. ``used``: whether that one is read."""

    def __init__(self, root: Path, path: Path, text: str) -> None:
        self._path, self._text = os.path.realpath(path), text
        self._read = reader_of(root, self._stop_at)
        self.used = False

    def read(self, name: str, file: str) -> tuple[str, str] | None:
        """Return an included file, as a ``Reader`` does."""
        try:
            return self._read(name, file)
        except _Reached:
            self.used = True
            return self._path, self._text

    def _stop_at(self, path: Path) -> None:
        if os.path.realpath(path) == self._path:  # unlike resolve, it accepts a circle of links
            raise _Reached


def _including(home: Home, path: Path) -> Iterator[Path]:
    """Yield the other parameter files of the home that include files."""
    folder = home.root / "dirprm"
    files = [each for each in sorted(folder.iterdir()) if each.suffix.lower() == ".prm"] if folder.is_dir() else []
    for file in (*files, home.globals):
        words = _text_of(file).upper()
        if file != path and ("INCLUDE" in words or "OBEY" in words):
            yield file


def _text_of(path: Path) -> str:
    """Return a file's text; nothing for one that cannot be read, which no process can read either. Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
