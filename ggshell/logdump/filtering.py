"""FILTER: set, list and clear the filters of ``filters``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ggshell.errors import StatementError, UsageError
from ggshell.logdump.answers import Answer, FilterList
from ggshell.logdump.filters import SUBJECTS, Filter, FilterSide, make
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession

_SPLIT = re.compile(r";(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)")


@action("FILTER ENABLE", True)
@action("FILTER ON", True)
@action("FILTER DISABLE", False)
@action("FILTER OFF", False)
def filter_on(session: LogdumpSession, on: bool) -> Iterator[Answer]:
    """Switch filters on or off."""
    session.filters.enabled = on
    yield from ()


@action("FILTER CLEAR")
def filter_clear(session: LogdumpSession, *, all: bool = False, n: int = 0, filter_spec: str = "") -> Iterator[Answer]:  # noqa: A002 - the manual's word
    """Remove one filter, those of one kind, or all. Raises UsageError if there is no such filter."""
    if filter_spec:
        session.filters.remove_kind(filter_spec)
    elif n and not all:
        session.filters.remove(n)
    else:
        session.filters.clear()
    yield from ()


@action("FILTER SHOW")
def filter_show(session: LogdumpSession) -> Iterator[Answer]:
    """List the filters of both sides."""
    yield FilterList(session.filters)


@action("FILTER")
def filter_add(
    session: LogdumpSession, *, include: bool = False, exclude: bool = False, match: str = "", **conditions: str
) -> Iterator[Answer]:
    """Add conditions, or set how those of a side are combined; without arguments list the filters. Raises UsageError."""
    side = session.filters.exclude if exclude else session.filters.include
    if match:
        _match(session, side if include or exclude else None, match)
        return
    if not conditions:
        if include or exclude:
            raise UsageError("FILTER requires a condition after INCLUDE or EXCLUDE", hint="HELP FILTER")
        yield FilterList(session.filters)
        return
    made: list[Filter] = []
    for subject, text in conditions.items():
        first, *more = _SPLIT.split(text)
        made += make(subject, first, session.display.moment)
        for part in more:
            word, _, rest = part.strip().partition(" ")
            if word.upper() == "MATCH":
                _match(session, side, rest)
            elif word.upper() in SUBJECTS:
                made += make(word, rest, session.display.moment)
            elif word:
                raise StatementError(f"FILTER does not know {word}", hint=f"one of {', '.join(sorted(SUBJECTS))}")
    side.filters += made
    session.filters.enabled = True


def _match(session: LogdumpSession, side: FilterSide | None, how: str) -> None:
    if how.strip().upper() not in ("ANY", "ALL"):
        raise UsageError(f"FILTER MATCH takes ANY or ALL, not {how.strip()}")
    for each in [side] if side is not None else [session.filters.include, session.filters.exclude]:
        each.match_all = how.strip().upper() == "ALL"
