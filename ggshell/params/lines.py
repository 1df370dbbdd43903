"""Parameter files to parsed parameters, each with its place; all errors of a file, not the first only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import ParameterError, StatementError, StoreError
from ggshell.syntax import grammar, pages
from ggshell.syntax.statement import without_comment

_TO_SEMICOLON = ("TABLE", "MAP", "SEQUENCE")


class Parameter(NamedTuple):
    """One parameter of a file."""

    name: str
    args: dict[str, Any]
    line: int
    text: str


class RawParameter(NamedTuple):
    """A parameter as it stands, over as many lines as it has, and the line on which it begins."""

    text: str
    line: int


def logical_lines(text: str) -> list[RawParameter]:
    """Physical lines to parameters: ``&`` continues, TABLE and MAP run to their semicolon, comments go."""
    found: list[RawParameter] = []
    open_text, begun = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw).strip()
        if line.upper().startswith("COMMENT ") or not line:
            continue
        if not open_text:
            begun = number
        joined = f"{open_text} {line}".strip()
        first = joined.split(None, 1)[0].upper().rstrip(";")
        if joined.endswith("&"):
            open_text = joined[:-1].rstrip()
        elif first in _TO_SEMICOLON and not joined.endswith(";"):
            open_text = joined
        else:
            open_text = ""
            found.append(RawParameter(joined.rstrip("; \t"), begun))
    if open_text:
        found.append(RawParameter(open_text, begun))
    return [raw for raw in found if raw.text]


def parse_parameters(text: str, path: Path, process: str) -> list[Parameter]:
    """The parameters of a file for a kind of process (Extract, Replicat, Manager, GLOBALS).

    Raises ParameterError for the first that is wrong, with the others in its hint.
    """
    found: list[Parameter] = []
    errors: list[ParameterError] = []
    for raw in logical_lines(text):
        try:
            parsed = grammar.parse(raw.text, grammar.PARAMETERS)
        except StatementError as error:
            errors.append(_at(error, path, raw))
            continue
        name = parsed.key.split()[0]
        meant = pages.read(pages.index(grammar.PARAMETERS)[parsed.page]).facts.get("For", "")
        if process not in meant:
            errors.append(
                ParameterError(
                    f"{name} does not belong into the parameters of {process}: it is for {meant}",
                    where=f"{path}:{raw.line}:1",
                    line=raw.line,
                    source=raw.text,
                )
            )
            continue
        found.append(Parameter(name, parsed.args, raw.line, raw.text))
    if errors:
        first = errors[0]
        if len(errors) > 1:
            more = "; ".join(f"line {error.line}: {error.message}" for error in errors[1:6])
            first.hint = f"{first.hint}; also {more}".strip("; ")
        raise first
    return found


def _at(error: StatementError, path: Path, raw: RawParameter) -> ParameterError:
    return ParameterError(
        error.message,
        where=f"{path}:{raw.line}:{error.column}",
        hint=error.hint,
        line=raw.line,
        column=error.column,
        source=raw.text,
        page=error.page,
    )


def read_parameters(path: Path, process: str) -> list[Parameter]:
    """Parse a file.  Raises StoreError when it cannot be read."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise StoreError(
            f"parameter file {path} does not exist", code="GGS-00306", hint="EDIT PARAMS makes it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read parameter file {path}: {error}") from error
    return parse_parameters(text, path, process)
