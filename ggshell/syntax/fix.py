"""FC: an earlier statement changed by marks typed beneath it, as terminals of old did it.

The edit line stands exactly under the statement.  ``d`` takes the character above it away, ``i text`` puts text before the
character above the ``i``, ``r text`` writes over what stands from above the ``r`` on; any other text writes over what stands
above it.
"""

from __future__ import annotations

from itertools import zip_longest


def fixed(statement: str, marks: str) -> str:
    """The statement as an edit line changes it."""
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
