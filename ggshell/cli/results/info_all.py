"""INFO ALL: the processes, and the table that monitoring scripts read."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.cli.results import Note, Row
from ggshell.durations import clock_text, whole_seconds
from ggshell.errors import GgsError


class ProcessLine(NamedTuple):
    """One process in INFO ALL; lag and age are in microseconds, None if there is none.

    ``known``: the group's files can be read; ``lag_known``: the trail that its lag depends on can be read too.
    """

    program: str
    status: str
    group: str = ""
    lag: int | None = None
    since: int | None = None
    known: bool = True
    lag_known: bool = True


class InfoAll(NamedTuple):
    """The result of INFO ALL; ``errors``: groups whose files cannot be read; ``notes``: trails that cannot be read."""

    processes: tuple[ProcessLine, ...]
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def errors_first(self) -> bool:
        """Errors are shown before the table, because scripts count lines from the end of the output."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return ("program", "status", "group", "lag_seconds", "since_seconds")

    @property
    def rows(self) -> list[Row]:
        return [
            (line.program, line.status, line.group or None, whole_seconds(line.lag), whole_seconds(line.since))
            for line in self.processes
        ]

    @property
    def layout(self) -> str:
        return _info_all(self)


_ROW = "%-12s%-12s%-12s%-14s%-12s"


def _info_all(result: InfoAll) -> str:
    """Format the table: blank lines around the header, rows of 2 (Manager) or 5 fields, and a blank line at the end."""
    heads = _ROW % ("Program", "Status", "Group", "Lag at Chkpt", "Time Since Chkpt")
    return "\n".join(["", heads, "", *map(_row, result.processes), "", ""])


def _row(line: ProcessLine) -> str:
    lag = clock_text(line.lag) if line.known and line.lag_known else "Unknown"
    since = clock_text(line.since) if line.known else "Unknown"
    return _ROW % (line.program, line.status, line.group, lag, since)
