"""Tables and the data formats: text tables, table, vertical, csv, json, markdown.

All tables of the command line that are not in a fixed layout of GGSCI are made here. At a terminal, a table that is wider
than the terminal turns vertical; in a pipe or a file it never does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ggshell.cli.results import Result, Text

if TYPE_CHECKING:
    from ggshell.cli.outcome import Outcome

LONGEST = 60
"""The length at which the text tables truncate a value; the data formats show it in full."""
CUT = "..."


def render(result: Result, style: str) -> str:
    """Format a result in any data format except json; empty if it has no columns or no rows."""
    columns, rows = result.columns, result.rows
    if not columns or not rows:
        return ""
    if style == "csv":
        return _csv(columns, rows)
    if isinstance(result, Text):  # a page has lines but no columns
        return result.text.rstrip("\n") + "\n"
    if style == "vertical":
        return vertical(columns, rows)
    from tabulate import tabulate

    pattern = "github" if style == "markdown" else "psql"
    cells = [["" if value is None else value for value in row] for row in rows]
    text: str = tabulate(cells, headers=columns, tablefmt=pattern, disable_numparse=True)
    return vertical(columns, rows) if style == "table" and is_too_wide(text) else text + "\n"


def table_text(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format rows as a table under their heads; numeric columns are right-aligned. Too wide a table turns vertical."""
    cells = [[_cut(cell_text(value)) for value in row] for row in rows]
    numeric = [
        all(isinstance(row[place], int | float | None) and not isinstance(row[place], bool) for row in rows)
        for place in range(len(heads))
    ]
    first, *others = aligned([heads, *cells], numeric)
    rule = "  ".join("-" * max(len(head), *(len(row[place]) for row in cells), 1) for place, head in enumerate(heads))
    text = "\n".join([first, rule, *others])
    if rows and is_too_wide(text):
        return vertical(heads, [[cell_text(value) for value in row] for row in rows])
    return text + "\n"


def narrow_lines(lines: list[str], heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table in a fixed layout, or if they are wider than the terminal, another form of the table."""
    return table_text(heads, rows).splitlines() if is_too_wide("\n".join(lines)) else lines


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[str]:
    """Format rows of texts in columns, two blanks apart. ``right``: which columns are right-aligned."""
    if not rows:
        return []
    places = range(len(rows[0]))
    widths = [max(1, *(len(row[place]) for row in rows)) for place in places]
    sides = right or [False] * len(widths)
    return [
        "  ".join(f"{row[place]:{'>' if sides[place] else '<'}{widths[place]}}" for place in places).rstrip()
        for row in rows
    ]


def vertical(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format one line per value, and a heading per row."""
    width = max(map(len, columns))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"-[ {number} ]".ljust(width + 20, "-"))
        lines += [
            f"{name:<{width}} | {'' if value is None else value}" for name, value in zip(columns, row, strict=True)
        ]
    return "\n".join(lines) + "\n"


def is_too_wide(text: str) -> bool:
    """Whether standard output is a terminal, and a line of a text is longer than the terminal is wide."""
    if not sys.stdout.isatty():
        return False
    import shutil

    return max(map(len, text.splitlines()), default=0) > shutil.get_terminal_size().columns


def cell_text(value: object) -> str:
    """Format a value for display: maps as name=value pairs, UTC times without offset and zero fractions."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={'NULL' if each is None else each}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if len(text) == 32 and text.endswith("+00:00") and text[10] == "T":
        return text[:26].replace("T", " ").removesuffix(".000000")
    return " ".join(text.split())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(CUT)]}{CUT}"


def _csv(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def json_line(outcome: Outcome) -> str:
    """Format a statement's outcome as one line of JSON; its keys are always the same."""
    error = outcome.errors[0] if outcome.errors else None
    first = error or (outcome.notes[0] if outcome.notes else None)
    said = [*(each.located for each in outcome.errors), *(note.message for note in outcome.notes)]
    result = outcome.result
    answer: dict[str, Any] = {
        "statement": outcome.statement,
        "status": "error" if error else "not supported" if outcome.not_supported else "ok",
        "code": first.code if first else "",
        "message": "; ".join(said),
        "hint": "; ".join(dict.fromkeys(each.hint for each in outcome.errors if each.hint)),
        "columns": list(result.columns) if result is not None else [],
        "rows": [list(row) for row in result.rows] if result is not None else [],
    }
    return json.dumps(answer, default=str, ensure_ascii=False) + "\n"
