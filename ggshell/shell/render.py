"""Answers to text.  GGSCI's layout comes ready; tables, CSV and JSON are made here."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum

from ggshell.shell.results import Result


class Format(StrEnum):
    """How answers are shown."""

    GGSCI = "ggsci"
    TABLE = "table"
    VERTICAL = "vertical"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


def render(result: Result, form: Format) -> str:
    """An answer as text for a person or a program (JSON has the statement beside it: ``json_line``)."""
    if form is Format.GGSCI or not result.columns:
        return result.text
    if form is Format.CSV:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
        return out.getvalue().rstrip("\n")
    if form is Format.VERTICAL:
        width = max(map(len, result.columns))
        blocks = [
            "\n".join(f"{name:<{width}}  {value}" for name, value in zip(result.columns, row, strict=True))
            for row in result.rows
        ]
        return "\n\n".join(blocks)
    from tabulate import tabulate

    style = "github" if form is Format.MARKDOWN else "simple"
    return tabulate(result.rows, headers=result.columns, tablefmt=style, disable_numparse=True)


def json_line(statement: str, result: Result | None, *, code: str = "", message: str = "") -> str:
    """One JSON object: the statement, whether it went well, and its facts."""
    fields = {
        "statement": statement,
        "status": "ok" if result is not None else "error",
        "code": code,
        "message": message if result is None else result.text,
        "columns": list(result.columns) if result is not None else [],
        "rows": [list(row) for row in result.rows] if result is not None else [],
    }
    return json.dumps(fields, ensure_ascii=False, default=str)
