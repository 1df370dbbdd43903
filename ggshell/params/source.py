"""The lines of a parameter file as they count: without comments, with INCLUDE and OBEY files in place, each with its origin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ggshell.errors import ParameterError
from ggshell.params.traced import Traced, traced
from ggshell.syntax.statement import without_comment

DEEPEST = 16
Reader = Callable[[str, str], "tuple[str, str] | None"]
"""(name as written, name of the file that names it) -> (the file's own name, its text); None when there is no such file."""
_INCLUDE = re.compile(r"(?i)(INCLUDE|OBEY)\s+(\"[^\"]+\"|'[^']+'|[^\s;]+)\s*;?")
_COMMENT = re.compile(r"(?i)COMMENT(?=\s|$)")


def reader_of(root: Path) -> Reader:
    """A reader for a parameter file: beside the file that names another, in the folder above it (the home of a file in
    dirprm), and from the same two of the file that everything began with."""

    def read(name: str, file: str) -> tuple[str, str] | None:
        wanted = Path(name.replace("\\", "/"))
        beside = Path(file).parent
        places = dict.fromkeys([beside, beside.parent, root.parent, root.parent.parent])
        for place in [Path()] if wanted.is_absolute() else places:
            path = place / wanted
            try:
                if path.is_file():
                    return str(path), path.read_text()
            except (OSError, ValueError) as error:
                raise ParameterError(f"cannot read {path}: {error}", where=str(path)) from error
        return None

    return read


def read_beside(name: str, file: str) -> tuple[str, str] | None:
    """The same for a file that nothing else names."""
    return reader_of(Path(file))(name, file)


def source_lines(text: str, file: str, read: Reader, errors: list[ParameterError], depth: int = 0) -> list[Traced]:
    """The lines of a text; what is wrong with its INCLUDEs goes into ``errors``."""
    found: list[Traced] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw)
        bare = line.strip()
        if not bare or _COMMENT.match(bare):
            continue
        here = traced(bare, file, number, line.index(bare) + 1)
        match = _INCLUDE.fullmatch(bare)
        if match is None:
            found.append(here)
            continue
        other = _included(match, here, read, errors, depth)
        if other is not None:
            found += source_lines(other[1], other[0], read, errors, depth + 1)
    return found


def _included(
    match: re.Match[str], here: Traced, read: Reader, errors: list[ParameterError], depth: int
) -> tuple[str, str] | None:
    """Name and text of the file that a line names; None when it cannot be had, which is an error."""
    name = match[2].strip("'\"")
    if depth >= DEEPEST:
        text = f"{match[1].upper()} goes deeper than {DEEPEST} files"
        errors.append(wrong(here, text, "does a file include itself?", match.start(2)))
        return None
    try:
        found = read(name, here.begin.file)
    except ParameterError as error:
        errors.append(wrong(here, error.message, error.hint, match.start(2)))
        return None
    if found is None:
        hint = "it is looked for beside this file, then in the home"
        errors.append(wrong(here, f"file {name} is not found", hint, match.start(2)))
    return found


def wrong(line: Traced, message: str, hint: str = "", place: int = 0) -> ParameterError:
    """An error at a place of a line, counted from 0."""
    origin = line.at(place)
    return ParameterError(
        message, where=str(origin), hint=hint, line=origin.line, column=origin.column, source=line.text
    )
