"""Checks parameter files that the service writes: which files they may include, and which of their errors it shows.

A parameter file includes other files, and an error quotes the line that is wrong. Without these checks, INCLUDE would show any
file that the service can read to whoever may write a parameter file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ggshell.errors import ParameterError
from ggshell.parameters.loading import examine
from ggshell.parameters.source_lines import MISSING_CODE, reader_of, source_lines
from ggshell.service.named_files import Bounds, is_outside, outside_error

_HIDDEN: Final = "a line that comes from an included file is not valid"
_HINT: Final = "run ggshell check with this file on the machine of the home"


def require_includes(bounds: Bounds, text: str, path: Path) -> None:
    """Check the files that a text includes, and the files that these include, before any of them is read.

    Raises UsageError for a file outside the home, or one with secrets.
    """
    source_lines(text, str(path), reader_of(path, lambda found: _require_readable(bounds, found)), [])


def refusals_of(bounds: Bounds, text: str, path: Path, process: str) -> list[ParameterError]:
    """Return the errors of a parameter file, without text of the files that it includes.

    Raises UsageError for an included file outside the home, or one with secrets.
    """
    require_includes(bounds, text, path)
    found = examine(text, path, process).refusals
    if not found:
        return []
    alone = examine(text, path, process, lambda name, _: (name, "")).refusals
    own = {(error.where, error.message) for error in alone}
    return [
        error if (error.where, error.message) in own or _is_missing(error, path) else _hidden(error, path)
        for error in found
    ]


def _is_missing(error: ParameterError, path: Path) -> bool:
    """Whether an error is that of a line of the file itself which includes a file that does not exist."""
    return error.code == MISSING_CODE and error.where.startswith(f"{path}:")


def _require_readable(bounds: Bounds, path: Path) -> None:
    if is_outside(bounds, str(path)):
        raise outside_error(f"a parameter file cannot include {path} through the service: it")


def _hidden(error: ParameterError, path: Path) -> ParameterError:
    """Return an error with its position only."""
    return ParameterError(
        _HIDDEN, code=error.code, where=error.where or str(path), hint=_HINT, line=error.line, column=error.column
    )
