"""The request, the progress and the result of LOAD."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ggshell.types import TableName


class LoadRequest(NamedTuple):
    """``tables``: patterns, empty for all. ``definitions``: create the tables and all other objects as well.

    ``restart``: begin again, even if an earlier load of this source is complete or was interrupted.
    """

    tables: tuple[str, ...] = ()
    definitions: bool = False
    jobs: int = 4
    restart: bool = False


class LoadProgress(NamedTuple):
    """How far a load is: committed rows, bytes that were moved, complete tables, and the share of the work (0 to 1).

    ``doing``: what is in work besides copying; empty while tables are copied.
    """

    rows: int
    bytes: int
    tables: int
    whole: int
    share: float
    doing: str = ""


OnProgress = Callable[[LoadProgress], None]


class LoadedTable(NamedTuple):
    """A table that is complete in the target. ``csn``: it holds every commit up to there and no later one.

    ``seconds``: the time of its parts together. ``kept``: an earlier load has copied it. ``logged``: later changes of it are
    in the source's log.
    """

    table: TableName
    rows: int
    bytes: int
    seconds: float
    csn: str
    kept: bool
    logged: bool


class LoadOutcome(NamedTuple):
    """The result of a load. ``again``: an earlier load was removed because the definitions have changed since."""

    tables: tuple[LoadedTable, ...]
    seconds: float
    again: bool = False

    @property
    def csns(self) -> tuple[str, ...]:
        """The CSNs of the tables, the lowest first; more than one if the load was interrupted."""
        return tuple(sorted({table.csn for table in self.tables}))
