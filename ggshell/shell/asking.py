"""From a statement about trails to the engines that answer it, and the answer as a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ggshell.errors import GgsError, NotFoundError
from ggshell.shell.results import Note, Row

if TYPE_CHECKING:
    from ggshell.record.definition import TableDefinition
    from ggshell.shell.session import Session
    from ggshell.spark.questions.span import Span
    from ggshell.spark.questions.trails import Trails
    from ggshell.spark.trail_keys import HomeKeys
    from ggshell.spark.views import Answer

LONGEST = 60
"""A value is cut to so many characters in text tables; data formats have it whole."""
_CUT = "..."


class Answered(NamedTuple):
    """The rows of a question; ``layout`` the same as text."""

    heads: tuple[str, ...]
    values: Sequence[Row]
    layout: str
    notes: tuple[Note, ...] = ()
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.heads

    @property
    def rows(self) -> list[Row]:
        return list(self.values)


def trails_of(session: Session, texts: Sequence[str]) -> Trails:
    """The trails that a statement names, relative to the home.  Raises NotFoundError, UsageError."""
    from ggshell.spark.questions.trails import trails

    return trails(texts, session.home.root, session.engines, keys=home_keys(session))


def home_keys(session: Session) -> HomeKeys:
    """The home's keys for encrypted trails; the wallet is looked into when a file needs it."""
    from ggshell.process.home_wallet import wallet_of
    from ggshell.spark.trail_keys import HomeKeys

    return HomeKeys.of(session.home, wallet_of(session.home))


def span_of(session: Session, trails: Trails, only: str = "", since: str = "", until: str = "") -> Span:
    """The part of the trails that ONLY, SINCE and UNTIL leave."""
    from ggshell.shell.begin import begin_time
    from ggshell.spark.questions.span import Span

    now = session.clock.now()
    return Span(begin_time(since, now), begin_time(until, now), definition_of(trails, only).name if only else None)


def definition_of(trails: Trails, text: str) -> TableDefinition:
    """A table as the trails define it, the newest way.  Raises NotFoundError with those that they have."""
    from ggshell.spark.paths import local_copy
    from ggshell.spark.splits import find_definitions

    return find_definitions(map(local_copy, trails.files), text)[-1]


def answered(trails: Trails, answer: Answer, empty: str = "") -> Answered:
    """An answer as a result, with notes of what was not read, also where it has no rows and ``empty`` says that there should
    be some: then it is a failure."""
    notes = unread(trails)
    if empty and not answer.rows:
        return Answered(answer.columns, answer.rows, "", notes, (NotFoundError(empty),))
    return Answered(answer.columns, answer.rows, told(answer), notes)


def unread(trails: Trails) -> tuple[Note, ...]:
    """Notes of the bytes at the ends of trails that nobody may read yet."""
    from ggshell.spark.questions.file_facts import unread_notes

    return tuple(Note("GGS-00710", text) for text in unread_notes(trails.files))


def told(answer: Answer) -> str:
    """An answer as text: a table, how many rows, who answered."""
    count = f"{len(answer.rows):,} row{'' if len(answer.rows) == 1 else 's'}"
    table = table_text(answer.columns, answer.rows)
    cut = "Values that end in ... are cut; --format vertical (or SET FORMAT) has them whole\n" if _CUT in table else ""
    return f"\n{table}\n{count} ({answer.engine}, {answer.seconds:.2f} s)\n{cut}"


def table_text(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns beside each other, numbers to the right."""
    cells = [[cell_text(value) for value in row] for row in rows]
    numeric = [
        all(isinstance(row[place], int | float | None) and not isinstance(row[place], bool) for row in rows)
        for place in range(len(heads))
    ]
    widths = [max(len(head), *(len(row[place]) for row in cells), 1) for place, head in enumerate(heads)]
    lines = [_line(heads, widths, numeric), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    return "  ".join(
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )


def cell_text(value: object) -> str:
    """A value for a person: maps as names and values, times without what is always the same."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{name}={'NULL' if each is None else each}" for name, each in value.items()))
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    if len(text) == 32 and text.endswith("+00:00") and text[10] == "T":
        return text[:26].replace("T", " ").removesuffix(".000000")
    return _cut(text)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - len(_CUT)]}{_CUT}"
