"""Parameter files to parsed parameters, each with its place; all errors of a file, not the first only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import ParameterError, StatementError, StoreError
from ggshell.params.macros import expand_macros
from ggshell.params.source import Reader, read_beside, reader_of, source_lines, wrong
from ggshell.params.traced import Origin, Traced, join
from ggshell.syntax import grammar, pages
from ggshell.syntax.gaps import CODE, changes_rows, gaps_of_statement, keeps_rows
from ggshell.syntax.parsed import Parsed

_SHOWN = 5
_HIDDEN = re.compile(r"\"[^\"]*\"|'[^']*'")


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
    traced: Traced = Traced("", (0,), (Origin("", 1, 1),))

    def at(self, column: int) -> Origin:
        """Where a column of the text (from 1) stands."""
        return self.traced.at(column - 1)


def logical_lines(
    text: str, file: str = "", errors: list[ParameterError] | None = None, read: Reader = read_beside
) -> list[RawParameter]:
    """Physical lines to parameters: INCLUDEs and macros in place, ``&`` continues, TABLE and MAP run to their semicolon.

    What is wrong with an INCLUDE, a macro or an end goes into ``errors``.
    """
    found_wrong = errors if errors is not None else []
    found: list[RawParameter] = []
    parts: list[Traced] = []
    to_semicolon = goes_on = False
    for line in expand_macros(source_lines(text, file, read, found_wrong), found_wrong):
        word = first_word(line.text)
        if parts and to_semicolon and not goes_on and _ends_with_semicolon(word) and not _open(parts):
            name = first_word(parts[0].text)
            end = parts[-1]
            found_wrong.append(wrong(end, f"{name} does not end: its ; is missing", f"{name} … ;", len(end.text)))
            found += _cut(parts)
            parts = []
        goes_on = line.text.endswith("&")
        parts.append(line[:-1].stripped() if goes_on else line)
        to_semicolon = _ends_with_semicolon(first_word(parts[0].text))
        if not goes_on and (not to_semicolon or line.text.endswith(";")):
            found += _cut(parts)
            parts = []
    return found + (_cut(parts) if parts else [])


def first_word(text: str) -> str:
    """The word that a line begins with, in upper case."""
    match = re.match(r"[^\s,;(]+", text)
    return match[0].upper() if match else ""


def _ends_with_semicolon(name: str) -> bool:
    """Whether the manual says that a parameter runs to its semicolon."""
    path = pages.index(grammar.PARAMETERS).get(name.lower())
    return path is not None and pages.read(path).facts.get("Ends") == ";"


def _open(parts: list[Traced]) -> bool:
    """Whether a parenthesis is open: what follows is no new parameter."""
    text = _HIDDEN.sub("", " ".join(part.text for part in parts))
    return text.count("(") > text.count(")")


def _cut(parts: list[Traced]) -> list[RawParameter]:
    """The parameters of joined lines: one, or several with ``;`` between."""
    whole = join(part for part in parts if part)
    hidden = _HIDDEN.sub(lambda quoted: "x" * len(quoted[0]), whole.text)
    found, begin = [], 0
    for end in [match.start() for match in re.finditer(";", hidden)] + [len(whole.text)]:
        part = whole[begin:end].stripped()
        begin = end + 1
        if part:
            found.append(RawParameter(part.text, part.begin.line, part.begin.file, part))
    return found


def parse_all(text: str, path: Path, process: str) -> tuple[list[Parameter], list[ParameterError]]:
    """The parameters of a file for a kind of process (Extract, Replicat, Manager, GLOBALS), and everything wrong in it."""
    found: list[Parameter] = []
    errors: list[ParameterError] = []
    for raw in logical_lines(text, str(path), errors, reader_of(path)):
        try:
            parsed = grammar.parse(raw.text, grammar.PARAMETERS)
        except StatementError as error:
            errors.append(located(error, raw))
            continue
        refused = _strange(parsed, raw, process) or _harmful(parsed, raw)
        if refused is not None:
            errors.append(refused)
            continue
        note = "; ".join(gap.about(parsed.key) for gap in gaps_of_statement(grammar.PARAMETERS, parsed))
        found.append(Parameter(parsed.key.split()[0], parsed.args, raw.line, raw.text, note))
    return found, errors


def parse_parameters(text: str, path: Path, process: str) -> list[Parameter]:
    """The parameters of a file for a kind of process.

    Raises ParameterError for the first that is wrong, with the others in its hint.
    """
    found, errors = parse_all(text, path, process)
    if errors:
        first = errors[0]
        if len(errors) > 1:
            more = "; ".join(f"line {error.line}: {error.message}" for error in errors[1 : _SHOWN + 1])
            rest = f"; and {len(errors) - 1 - _SHOWN} more" if len(errors) > _SHOWN + 1 else ""
            first.hint = f"{first.hint}; also {more}{rest}".strip("; ")
        raise first
    return found


def meant_for(page: str) -> str:
    """Whose parameters a page's are: ``Extract, Replicat``."""
    return pages.read(pages.index(grammar.PARAMETERS)[page]).facts.get("For", "")


def _strange(parsed: Parsed, raw: RawParameter, process: str) -> ParameterError | None:
    meant = meant_for(parsed.page)
    if process in meant:
        return None
    name = parsed.key.split()[0]
    text = f"{name} does not belong into the parameters of {process}: it is for {meant}"
    return _error(raw, text, page=parsed.page)


def _harmful(parsed: Parsed, raw: RawParameter) -> ParameterError | None:
    """What is not carried out and would let other rows arrive than the file asks for."""
    for gap in gaps_of_statement(grammar.PARAMETERS, parsed):
        if changes_rows(gap.option.split()[0] if gap.option else parsed.page) and not keeps_rows(parsed.page):
            hint = "leave it out, knowing what that changes"
            return _error(raw, gap.about(parsed.key), gap.column, code=CODE, hint=hint, page=parsed.page)
    return None


def located(error: StatementError, raw: RawParameter) -> ParameterError:
    """A statement's error at its place in the file."""
    found = _error(raw, error.message, error.column, hint=error.hint, page=error.page)
    if error.code != StatementError.code:
        found.code = error.code
    return found


def _error(
    raw: RawParameter, message: str, column: int = 1, *, code: str | None = None, hint: str = "", page: str = ""
) -> ParameterError:
    place = raw.at(column)
    through = f"in macro {place.macro}" if place.macro else ""
    return ParameterError(
        message,
        code=code,
        where=str(place),
        hint="; ".join(part for part in (hint, through) if part),
        line=place.line,
        column=place.column,
        source=raw.text,
        page=page,
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
