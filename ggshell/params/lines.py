"""Parameter files to parsed parameters, each with its place; all errors of a file, not the first only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import ParameterError, StatementError, StoreError
from ggshell.params.macros import expand_macros
from ggshell.params.source import Reader, SourceLine, read_beside, source_lines
from ggshell.syntax import grammar, pages

_TO_SEMICOLON = ("TABLE", "MAP", "SEQUENCE")


class Parameter(NamedTuple):
    """One parameter of a file."""

    name: str
    args: dict[str, Any]
    line: int
    text: str


class RawParameter(NamedTuple):
    """A parameter as it stands, over as many lines as it has, and where it begins."""

    text: str
    line: int
    file: str = ""


def logical_lines(
    text: str, file: str = "", errors: list[ParameterError] | None = None, read: Reader = read_beside
) -> list[RawParameter]:
    """Physical lines to parameters: INCLUDEs and macros in place, ``&`` continues, TABLE and MAP run to their semicolon.

    What is wrong with an INCLUDE or a macro goes into ``errors``.
    """
    wrong = errors if errors is not None else []
    found: list[RawParameter] = []
    open_text, begun = "", SourceLine("", file, 0)
    for source in expand_macros(source_lines(text, file, read, wrong), wrong):
        if not open_text:
            begun = source
        joined = f"{open_text} {source.text}".strip()
        first = joined.split(None, 1)[0].upper().rstrip(";")
        if joined.endswith("&"):
            open_text = joined[:-1].rstrip()
        elif first in _TO_SEMICOLON and not joined.endswith(";"):
            open_text = joined
        else:
            open_text = ""
            found.append(RawParameter(joined.rstrip("; \t"), begun.line, begun.file))
    if open_text:
        found.append(RawParameter(open_text, begun.line, begun.file))
    return [raw for raw in found if raw.text]


def parse_parameters(text: str, path: Path, process: str) -> list[Parameter]:
    """The parameters of a file for a kind of process (Extract, Replicat, Manager, GLOBALS).

    Raises ParameterError for the first that is wrong, with the others in its hint.
    """
    found: list[Parameter] = []
    errors: list[ParameterError] = []
    for raw in logical_lines(text, str(path), errors):
        try:
            parsed = grammar.parse(raw.text, grammar.PARAMETERS)
        except StatementError as error:
            errors.append(_at(error, raw))
            continue
        name = parsed.key.split()[0]
        meant = pages.read(pages.index(grammar.PARAMETERS)[parsed.page]).facts.get("For", "")
        if process not in meant:
            errors.append(
                ParameterError(
                    f"{name} does not belong into the parameters of {process}: it is for {meant}",
                    where=f"{raw.file}:{raw.line}:1",
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


def _at(error: StatementError, raw: RawParameter) -> ParameterError:
    return ParameterError(
        error.message,
        where=f"{raw.file}:{raw.line}:{error.column}",
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
