"""Answers as data: table, vertical, csv, json, markdown."""

from __future__ import annotations

import json
from typing import Any

from ggshell.shell.execute import Outcome
from ggshell.shell.results import Result, Text


def render(result: Result, style: str) -> str:
    """An answer in one of the data formats but json; empty when it has neither columns nor rows."""
    columns, rows = result.columns, result.rows
    if not columns or not rows:
        return ""
    if style == "csv":
        return _csv(columns, rows)
    if isinstance(result, Text):  # a page has lines, and no columns
        return result.text.rstrip("\n") + "\n"
    if style == "vertical":
        return _vertical(columns, rows)
    from tabulate import tabulate

    pattern = "github" if style == "markdown" else "psql"
    cells = [["" if value is None else value for value in row] for row in rows]
    text: str = tabulate(cells, headers=columns, tablefmt=pattern, disable_numparse=True)
    return text + "\n"


def _csv(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _vertical(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    width = max(map(len, columns))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"-[ {number} ]".ljust(width + 20, "-"))
        lines += [
            f"{name:<{width}} | {'' if value is None else value}" for name, value in zip(columns, row, strict=True)
        ]
    return "\n".join(lines) + "\n"


def json_line(outcome: Outcome) -> str:
    """A statement's outcome as one JSON object on a line of its own; its keys are always the same."""
    error = outcome.errors[0] if outcome.errors else None
    first = error or (outcome.notes[0] if outcome.notes else None)
    said = [*map(str, outcome.errors), *(note.message for note in outcome.notes)]
    result = outcome.result
    answer: dict[str, Any] = {
        "statement": outcome.statement,
        "status": "error" if error else "ok",
        "code": first.code if first else "",
        "message": "; ".join(said),
        "columns": list(result.columns) if result is not None else [],
        "rows": [list(row) for row in result.rows] if result is not None else [],
    }
    return json.dumps(answer, default=str, ensure_ascii=False) + "\n"
