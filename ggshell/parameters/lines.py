"""Parameter files to parsed parameters, each with its position. All errors of a file are collected, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggshell.errors import ParameterError, StatementError, StoreError
from ggshell.language import grammar, pages
from ggshell.language.grammar import Parsed
from ggshell.language.redaction import starred, without_secrets
from ggshell.language.statement import Span
from ggshell.language.unsupported import CODE, refuses
from ggshell.parameters.macros import expand_macros
from ggshell.parameters.source_lines import Origin, Reader, Traced, join, read_beside, reader_of, source_lines, wrong

_SHOWN = 5
_HIDDEN = re.compile(r"\"[^\"]*\"|'[^']*'")


class RawParameter(NamedTuple):
    """The text of a parameter, joined from all its lines, and its position."""

    text: str
    line: int
    file: str = ""
    traced: Traced = Traced("", (0,), (Origin("", 1, 1),))

    def at(self, column: int) -> Origin:
        """The position in the file of a column of the text (from 1)."""
        return self.traced.at(column - 1)


class Parameter(NamedTuple):
    """One parameter of a file."""

    name: str
    args: dict[str, Any]
    line: int
    text: str
    note: str = ""
    """Why it is not supported, if it is not."""
    raw: RawParameter = RawParameter("", 1)
    spans: Mapping[str, tuple[Span, ...]] = MappingProxyType({})

    @property
    def place(self) -> str:
        """Where the parameter begins: file, line and column."""
        return str(self.raw.at(1))

    def wrong(
        self, message: str, argument: str = "", *, code: str | None = None, hint: str = "", page: str = ""
    ) -> ParameterError:
        """An error at the value of an argument, or at the beginning if no argument is named."""
        return _error(self.raw, message, self.column(argument), code=code, hint=hint, page=page)

    def column(self, argument: str, number: int = 0) -> int:
        """The column, from 1, of a value of an argument in the text."""
        spans = self.spans.get(argument, ())
        return spans[number][0] + 1 if number < len(spans) else 1

    def bodies(self, argument: str) -> list[tuple[str, int]]:
        """The values of an argument that can be given several times, each with its column."""
        given = self.args.get(argument, ())
        values = (given,) if isinstance(given, str) else given
        return [(str(value), self.column(argument, number)) for number, value in enumerate(values)]


class ParameterStatement(NamedTuple):
    """A statement of a parameter file after parsing: the parameter, or the error."""

    raw: RawParameter
    parameter: Parameter | None = None
    error: ParameterError | None = None
    parsed: Parsed | None = None


def logical_lines(
    text: str, file: str = "", errors: list[ParameterError] | None = None, read: Reader = read_beside
) -> list[RawParameter]:
    """Join physical lines into parameters.

    INCLUDEs and macros are expanded in place. ``&`` continues a line. TABLE and MAP continue until their semicolon. Errors
    in INCLUDEs and macros, and missing semicolons, are added to ``errors``.
    """
    found_wrong = errors if errors is not None else []
    found: list[RawParameter] = []
    parts: list[Traced] = []
    to_semicolon = goes_on = False
    for line in expand_macros(source_lines(text, file, read, found_wrong), found_wrong):
        word = first_word(line.text)
        if parts and to_semicolon and not goes_on and _ends_with_semicolon(word) and not _open(parts):
            found_wrong.append(_endless(parts))
            found += _cut(parts)
            parts = []
        goes_on = line.text.endswith("&")
        parts.append(line[:-1].stripped() if goes_on else line)
        to_semicolon = _ends_with_semicolon(first_word(parts[0].text))
        if not goes_on and (not to_semicolon or line.text.endswith(";")):
            found += _cut(parts)
            parts = []
    if parts and to_semicolon and not _open(parts):
        found_wrong.append(_endless(parts))
    return found + (_cut(parts) if parts else [])


def _endless(parts: list[Traced]) -> ParameterError:
    """The error for a parameter without its semicolon."""
    name, end = first_word(parts[0].text), parts[-1]
    return wrong(end, f"{name} must end with a semicolon", f"write {name} … ;", len(end.text))


def first_word(text: str) -> str:
    """The first word of a line, in upper case."""
    match = re.match(r"[^\s,;(]+", text)
    return match[0].upper() if match else ""


def _ends_with_semicolon(name: str) -> bool:
    """Whether the manual says that a parameter continues until its semicolon."""
    path = pages.index(grammar.PARAMETERS).get(name.lower())
    return path is not None and pages.read(path).facts.get("Ends") == ";"


def _open(parts: list[Traced]) -> bool:
    """Whether a parenthesis is still open, so that the next line does not begin a new parameter."""
    text = _HIDDEN.sub("", " ".join(part.text for part in parts))
    return text.count("(") > text.count(")")


def _cut(parts: list[Traced]) -> list[RawParameter]:
    """The parameters in joined lines: one, or several separated by ``;``."""
    whole = join(part for part in parts if part)
    hidden = _HIDDEN.sub(lambda quoted: "x" * len(quoted[0]), whole.text)
    found, begin = [], 0
    for end in [match.start() for match in re.finditer(";", hidden)] + [len(whole.text)]:
        part = whole[begin:end].stripped()
        begin = end + 1
        if part:
            found.append(RawParameter(part.text, part.begin.line, part.begin.file, part))
    return found


def statements(
    text: str, path: Path, process: str, read: Reader | None = None
) -> tuple[list[ParameterStatement], list[ParameterError]]:
    """Parse every statement of a file for a kind of process (Extract, Replicat, Manager, GLOBALS).

    ``read``: reads the included files, if not as a process does. Returns the statements, valid or not, and the errors in
    INCLUDEs and macros and of missing semicolons.
    """
    errors: list[ParameterError] = []
    raws = logical_lines(text, str(path), errors, read or reader_of(path))
    return [_statement(raw, process) for raw in raws], errors


def _statement(raw: RawParameter, process: str) -> ParameterStatement:
    try:
        parsed = grammar.parse(raw.text, grammar.PARAMETERS)
    except StatementError as error:
        return ParameterStatement(raw, error=located(error, raw))
    refused = _strange(parsed, raw, process) or _harmful(parsed, raw)
    if refused is not None:
        return ParameterStatement(raw, error=refused, parsed=parsed)
    note = "; ".join(gap.about(parsed.key) for gap in parsed.notes)
    found = Parameter(parsed.key.split()[0], parsed.args, raw.line, raw.text, note, raw, parsed.spans)
    return ParameterStatement(raw, found, parsed=parsed)


def parse_all(text: str, path: Path, process: str) -> tuple[list[Parameter], list[ParameterError]]:
    """The parameters of a file for a kind of process, and all errors."""
    found, errors = statements(text, path, process)
    errors += [each.error for each in found if each.error is not None]
    return [each.parameter for each in found if each.parameter is not None], errors


def parse_parameters(text: str, path: Path, process: str) -> list[Parameter]:
    """The parameters of a file for a kind of process.

    Raises ParameterError for the first error, with the others in its hint.
    """
    found, errors = parse_all(text, path, process)
    if errors:
        raise first_of(errors)
    return found


def first_of(errors: Sequence[ParameterError]) -> ParameterError:
    """The first error of a file, with the others in its hint."""
    first = errors[0]
    if len(errors) > 1:
        more = "; ".join(f"line {error.line}: {error.message}" for error in errors[1 : _SHOWN + 1])
        rest = f"; and {len(errors) - 1 - _SHOWN} more" if len(errors) > _SHOWN + 1 else ""
        first.hint = f"{first.hint}; also {more}{rest}".strip("; ")
    return first


def meant_for(page: str) -> str:
    """The processes that a parameter's page is for: ``Extract, Replicat``."""
    return pages.read(pages.index(grammar.PARAMETERS)[page]).facts.get("For", "")


def _strange(parsed: Parsed, raw: RawParameter, process: str) -> ParameterError | None:
    meant = meant_for(parsed.page)
    if process in meant:
        return None
    name = parsed.key.split()[0]
    text = f"{name} is not a parameter of {process}; it is for {meant}"
    return _error(raw, text, code="GGS-00105", page=parsed.page)


def _harmful(parsed: Parsed, raw: RawParameter) -> ParameterError | None:
    """The error for an unsupported option that would change the rows that arrive."""
    for gap in parsed.notes:
        if refuses(parsed.page, gap):
            hint = "remove it from the file, then check that the target receives the rows you want"
            return _error(raw, gap.about(parsed.key), gap.column, code=CODE, hint=hint, page=parsed.page)
    return None


def located(error: StatementError, raw: RawParameter) -> ParameterError:
    """The error of a statement, at its position in the file."""
    return _error(raw, error.message, error.column, code=error.code, hint=error.hint, page=error.page)


def _error(
    raw: RawParameter, message: str, column: int = 1, *, code: str | None = None, hint: str = "", page: str = ""
) -> ParameterError:
    place = raw.at(column)
    through = f"in macro {place.macro}" if place.macro else ""
    found = ParameterError(
        without_secrets(message, raw.text, grammar.PARAMETERS),
        code=code,
        where=str(place),
        hint="; ".join(part for part in (hint, through) if part),
        line=place.line,
        column=place.column,
        source=starred(raw.text, grammar.PARAMETERS),
        page=page,
    )
    found.spot = column - 1
    return found


def read_parameters(path: Path, process: str) -> list[Parameter]:
    """Read and parse a file. Raises StoreError if it cannot be read, ParameterError if it is not valid."""
    return parse_parameters(file_text(path), path, process)


def missing(path: Path) -> StoreError:
    """The error for a parameter file that does not exist."""
    hint = f"create it with EDIT PARAMS {path.stem}"
    return StoreError(f"parameter file {path} does not exist", code="GGS-00306", hint=hint)


def file_text(path: Path) -> str:
    """The text of a parameter file. Raises StoreError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise StoreError(f"cannot read parameter file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise StoreError(
            f"parameter file {path} is not UTF-8 text: line {line} has the byte 0x{error.object[error.start]:02x}",
            hint="save the file as UTF-8",
        ) from error
