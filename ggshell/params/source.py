"""The lines of a parameter file as they count: without comments, with INCLUDE and OBEY files in place, each with its origin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.syntax.statement import without_comment

DEEPEST = 16
Reader = Callable[[str, str], "tuple[str, str] | None"]
"""(name as written, name of the file that names it) -> (the file's own name, its text); None when there is no such file."""
_INCLUDE = re.compile(r"(?i)(INCLUDE|OBEY)\s+(\"[^\"]+\"|'[^']+'|[^\s;]+)\s*;?")


class SourceLine(NamedTuple):
    """A line without its comment, and where it stands."""

    text: str
    file: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.file else str(self.line)


def read_beside(name: str, file: str) -> tuple[str, str] | None:
    """Look for a file beside the one that names it, then in the folder above (the home of a file in dirprm)."""
    wanted = Path(name.replace("\\", "/"))
    places = [Path(file).parent, Path(file).parent.parent] if not wanted.is_absolute() else [Path()]
    for place in places:
        path = place / wanted
        if path.is_file():
            try:
                return str(path), path.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise ParameterError(f"cannot read {path}: {error}", where=str(path)) from error
    return None


def source_lines(text: str, file: str, read: Reader, errors: list[ParameterError], depth: int = 0) -> list[SourceLine]:
    """The lines of a text; what is wrong with its INCLUDEs goes into ``errors``."""
    found: list[SourceLine] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw).strip()
        if not line or re.match(r"(?i)COMMENT\b", line):
            continue
        here = SourceLine(line, file, number)
        match = _INCLUDE.fullmatch(line)
        if match is None:
            found.append(here)
            continue
        name = match[2].strip("'\"")
        if depth >= DEEPEST:
            errors.append(
                _error(here, f"{match[1].upper()} goes deeper than {DEEPEST} files", "does a file include itself?")
            )
            continue
        try:
            other = read(name, file)
        except ParameterError as error:
            errors.append(_error(here, error.message, error.hint))
            continue
        if other is None:
            errors.append(
                _error(here, f"file {name} is not found", "it is looked for beside this file, then in the home")
            )
            continue
        found += source_lines(other[1], other[0], read, errors, depth + 1)
    return found


def _error(line: SourceLine, message: str, hint: str = "") -> ParameterError:
    return ParameterError(message, where=f"{line.where}:1", hint=hint, line=line.line, source=line.text)
