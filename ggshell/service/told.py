"""Messages of statements as messages of the API.

A statement reports what it did as lines, some of which carry a time, a severity and a code as in ggserr.log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ggshell.service.answers import DONE, Said

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ggshell.cli.outcome import Outcome
    from ggshell.cli.results import Result

_EVENT: Final = re.compile(
    r"[-\d]+ [:.\d]+\s+(?P<severity>INFO|WARNING|ERROR)\s+(?P<code>[A-Z]{3}-\d{5})\s+(?P<text>.*)"
)


def result_lines(outcome: Outcome) -> list[str]:
    """The lines of a statement's result."""
    return [str(row[0]) for row in outcome.result.rows if row and row[0]] if outcome.result is not None else []


def messages_of(lines: Iterable[str]) -> list[Said]:
    """Return a message for each line that is not empty: with the line's own code and severity if it has them."""
    found: list[Said] = []
    for line in filter(None, (each.strip() for each in lines)):
        event = _EVENT.fullmatch(line)
        found.append(Said(event["code"], event["text"], event["severity"]) if event is not None else Said(DONE, line))
    return found


def events_of(result: Result | None) -> list[Said]:
    """Return the messages of the lines of a result that carry a code."""
    lines = [] if result is None else result.layout.splitlines()
    return messages_of(line for line in lines if _EVENT.fullmatch(line.strip()))
