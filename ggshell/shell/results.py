"""What handlers answer: frozen values without any layout.  Each can show itself as a table for the data formats.

The layouts of GGSCI are in ``layout``; whoever wants data takes ``columns`` and ``rows``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ggshell.errors import GgsError

Row = tuple[object, ...]


class Result(Protocol):
    """An answer: for the formats that are tables, its columns and rows."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> list[Row]: ...


class Note(NamedTuple):
    """Something to know beside an answer, that is no failure: a code and a sentence."""

    code: str
    message: str


class Message(NamedTuple):
    """Sentences, in order; ``apart``: with an empty line before them.  ``errors``: what failed for some of several groups."""

    lines: tuple[str, ...] = ()
    errors: tuple[GgsError, ...] = ()
    apart: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("message",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.lines if line]


class Text(NamedTuple):
    """A file or a page, line by line."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("line",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.text.splitlines()]


class Script(NamedTuple):
    """An obey file to run now; its statements answer for themselves."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return []


class Repeat(NamedTuple):
    """A statement to carry out again and again, with a pause of some seconds, until somebody ends it."""

    seconds: int
    statement: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return []


class ProcessLine(NamedTuple):
    """One process in INFO ALL; lag and age in microseconds, None where there is none.

    ``known``: its files can be read; ``lag_known``: so can the trail that its lag depends on.
    """

    program: str
    status: str
    group: str = ""
    lag: int | None = None
    since: int | None = None
    known: bool = True
    lag_known: bool = True


class InfoAll(NamedTuple):
    """INFO ALL; ``errors`` names groups whose files cannot be read, ``notes`` trails that cannot."""

    processes: tuple[ProcessLine, ...]
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("program", "status", "group", "lag_seconds", "since_seconds")

    @property
    def rows(self) -> list[Row]:
        return [
            (line.program, line.status, line.group or None, seconds(line.lag), seconds(line.since))
            for line in self.processes
        ]


def moment(microseconds: int) -> str | None:
    """A time as data shows it: ISO 8601 in UTC; None where there is none."""
    if not microseconds:
        return None
    from ggshell.clock import to_datetime

    return to_datetime(microseconds).isoformat(timespec="microseconds")


def seconds(microseconds: int | None) -> int | None:
    """Whole seconds, as lags are shown."""
    return None if microseconds is None else microseconds // 1_000_000
