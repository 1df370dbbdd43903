"""What a command answers: facts as rows, and the same in GGSCI's own layout."""

from __future__ import annotations

from typing import Any, NamedTuple


class Result(NamedTuple):
    """An answer.  ``text`` is the GGSCI layout (lines without the blank ones around); ``rows`` the facts for other formats."""

    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


def message(text: str) -> Result:
    """An answer of one sentence."""
    return Result(text, ("message",), ((text,),))


def joined(results: list[Result]) -> Result:
    """Several answers of one statement (a wildcard) as one."""
    if len(results) == 1:
        return results[0]
    texts = [result.text for result in results if result.text]
    columns = results[0].columns if results else ()
    rows = tuple(row for result in results if result.columns == columns for row in result.rows)
    return Result("\n\n".join(texts), columns, rows)
