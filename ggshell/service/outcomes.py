"""The outcome of a statement as data: what a connected shell shows, and what any other client can read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from ggshell.cli.outcome import Outcome
from ggshell.cli.output.tables import json_line, render
from ggshell.cli.results import Narrowing, Result, Text
from ggshell.errors import GgsError, StatementError
from ggshell.service.answers import Object


def outcome_fields(outcome: Outcome, style: str = "") -> Object:
    """Return an outcome's fields. ``style``: also add the result as ``text`` in this format.

    ``layout`` is the text in GGSCI's layout, ``narrowLayout`` its form for narrow terminals; ``errorsFirst``: GGSCI shows the
    errors before it.
    """
    result = outcome.result
    fields: Object = {
        "$schema": "ggshell:outcome",
        "statement": outcome.statement,
        "status": "error" if outcome.failed else "ok",
        "seconds": round(outcome.seconds, 6),
        "errors": [error_fields(error) for error in outcome.errors],
        "notes": [{"code": note.code, "message": note.message} for note in outcome.notes],
        "result": None if result is None else _result_fields(result),
    }
    if style:
        fields["text"] = _text(outcome, style)
    return fields


def error_fields(error: GgsError) -> Object:
    """Return an error: code, message, place and hint; for a syntax error also the text and the column of the error."""
    fields: Object = {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
    if isinstance(error, StatementError):
        fields |= {"source": error.source, "line": error.line, "column": error.column}
    return fields


def _result_fields(result: Result) -> Object:
    if isinstance(result, Text):
        return {"name": result.name, "page": result.text}
    narrow = {"narrowLayout": result.narrow_layout} if isinstance(result, Narrowing) else {}
    return {
        "columns": list(result.columns),
        "rows": [[_plain(value) for value in row] for row in result.rows],
        "layout": result.layout,
        "errorsFirst": bool(getattr(result, "errors_first", False)),
        **narrow,
    }


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
