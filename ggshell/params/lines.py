"""Parameter files to parsed parameters, each with its place; all errors of a file, not the first only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import ParameterError, StatementError, StoreError
from ggshell.params.macros import expand_macros
from ggshell.params.source import Reader, SourceLine, read_beside, source_lines
from ggshell.syntax import grammar, pages
from ggshell.syntax.gaps import CODE, changes_rows, gaps_of_statement

_TO_SEMICOLON = ("TABLE", "MAP", "SEQUENCE")


class Parameter(NamedTuple):
    """One parameter of a file."""

    name: str
    args: dict[str, Any]
    line: int
    text: str
    note: str = ""
    """Why it is not carried out, where it is not."""


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
        gaps = gaps_of_statement(grammar.PARAMETERS, parsed)
        harmful = next(
            (gap for gap in gaps if changes_rows(gap.option.split()[0] if gap.option else parsed.page)), None
        )
        if harmful is not None:
            # What arrived would be something else than what the file asks for.
            errors.append(
                ParameterError(
                    harmful.about(parsed.key),
                    code=CODE,
                    where=f"{raw.file}:{raw.line}:1",
                    hint="leave it out, knowing what that changes",
                    line=raw.line,
                    source=raw.text,
                    page=parsed.page,
                )
            )
            continue
        note = "; ".join(gap.about(parsed.key) for gap in gaps)
        found.append(Parameter(name, parsed.args, raw.line, raw.text, note))
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
