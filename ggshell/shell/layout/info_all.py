"""INFO ALL: the table that every monitoring script reads."""

from __future__ import annotations

from ggshell.shell.lag import clock_text
from ggshell.shell.results import InfoAll, ProcessLine

_ROW = "%-12s%-12s%-12s%-14s%-12s"


def info_all(result: InfoAll) -> str:
    """A blank line before the heads and one behind them; rows of 2 (Manager) or 5 fields; a blank line at the end."""
    heads = _ROW % ("Program", "Status", "Group", "Lag at Chkpt", "Time Since Chkpt")
    return "\n".join(["", heads, "", *map(_row, result.processes), "", ""])


def _row(line: ProcessLine) -> str:
    lag = clock_text(line.lag) if line.known and line.lag_known else "Unknown"
    since = clock_text(line.since) if line.known else "Unknown"
    return _ROW % (line.program, line.status, line.group, lag, since)


LAYOUTS = {InfoAll: info_all}
