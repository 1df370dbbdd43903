"""FC: edit an earlier statement with marks typed beneath it.

The edit line is aligned with the statement. ``d`` deletes the character above it. ``i text`` inserts text before the
character above the ``i``. ``r text`` overwrites from the character above the ``r``. Any other text overwrites the
characters above it.
"""

from __future__ import annotations

from itertools import zip_longest


def fixed(statement: str, marks: str) -> str:
    """The statement after the edit line is applied to it."""
    place = len(marks) - len(marks.lstrip())
    edit = marks.strip()
    if edit and not edit.lower().strip("d "):
        return "".join(
            letter for letter, mark in zip_longest(statement, marks, fillvalue="") if letter and mark not in ("d", "D")
        )
    statement = statement.ljust(place)
    if edit[:1].lower() == "i":
        return statement[:place] + marks.lstrip()[1:] + statement[place:]
    text = marks.lstrip()[1:] if edit[:1].lower() == "r" else marks.lstrip()
    return statement[:place] + text + statement[place + len(text) :]
