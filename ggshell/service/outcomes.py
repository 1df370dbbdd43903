"""The outcome of a statement as data: what a connected shell shows, and what any other client can read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

from ggshell.cli.outcome import Outcome
from ggshell.cli.output.tables import json_line, render
from ggshell.cli.results import Narrowing, Result, Text
from ggshell.errors import GgsError, StatementError
from ggshell.service.responses import Resource, Response


class ShownError(Response, kw_only=True):
    """An error of a statement. ``source``, ``line`` and ``column``: the place of a syntax error."""

    code: str
    message: str
    where: str
    hint: str
    source: str | None = None
    line: int | None = None
    column: int | None = None


class StatementNote(Response):
    """A note about a statement that was carried out."""

    code: str
    message: str


class StatementResult(Response, kw_only=True):
    """The result of a statement: a table, or a page of the manual with its ``name``.

    ``layout`` is the text in GGSCI's layout, ``narrow_layout`` its form for narrow terminals; ``errors_first``: GGSCI shows
    the errors before it.
    """

    name: str | None = None
    page: str | None = None
    columns: list[str] | None = None
    rows: list[list[Any]] | None = None
    layout: str | None = None
    errors_first: bool | None = None
    narrow_layout: str | None = None


class Question(Response):
    """A question that the statement asks; ``hidden``: the answer is a password."""

    text: str
    hidden: bool


class StatementOutcome(Resource, tag="ggshell:outcome", kw_only=True):
    """The outcome of a statement. ``text``: its result in the format of the request; ``login``: the database in use."""

    statement: str
    status: Literal["error", "ok"]
    seconds: float
    errors: list[ShownError]
    notes: list[StatementNote]
    result: StatementResult | None
    text: str | None = None
    login: str | None = None
    question: Question | None = None


def outcome_fields(outcome: Outcome, style: str = "") -> StatementOutcome:
    """Return an outcome's fields. ``style``: also add the result as ``text`` in this format."""
    result = outcome.result
    return StatementOutcome(
        statement=outcome.statement,
        status="error" if outcome.failed else "ok",
        seconds=round(outcome.seconds, 6),
        errors=[error_fields(error) for error in outcome.errors],
        notes=[StatementNote(code=note.code, message=note.message) for note in outcome.notes],
        result=None if result is None else _result_fields(result),
        text=_text(outcome, style) if style else None,
    )


def error_fields(error: GgsError) -> ShownError:
    """Return an error: code, message, place and hint; for a syntax error also the text and the column of the error."""
    found = ShownError(code=error.code, message=error.message, where=error.where, hint=error.hint)
    if isinstance(error, StatementError):
        found.source, found.line, found.column = error.source, error.line, error.column
    return found


def _result_fields(result: Result) -> StatementResult:
    if isinstance(result, Text):
        return StatementResult(name=result.name, page=result.text)
    return StatementResult(
        columns=list(result.columns),
        rows=[[_plain(value) for value in row] for row in result.rows],
        layout=result.layout,
        errors_first=bool(getattr(result, "errors_first", False)),
        narrow_layout=result.narrow_layout if isinstance(result, Narrowing) else None,
    )


def _text(outcome: Outcome, style: str) -> str:
    if style == "json":
        return json_line(outcome)
    if outcome.result is None:
        return ""
    return outcome.result.layout if style == "ggsci" else render(outcome.result, style)


def _plain(value: object) -> Any:
    """Return a value as JSON has it; other types become their text, as in the data formats."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value)
