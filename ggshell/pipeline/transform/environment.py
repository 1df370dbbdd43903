"""The facts of the process, its trail and its databases that @GETENV returns. Each process fills in its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ggshell.clock import Clock, SystemClock
from ggshell.pipeline.transform.values import Value

Facts = Mapping[str, Value]
Result = Mapping[str, Value]
"""What a query or procedure returned, by column."""


def _nothing(*_: object) -> Facts:
    return {}


def _no_count(*_: object) -> int | None:
    return None


class QueryDatabase(Protocol):
    """The database that queries run in.

    ``apply_pending`` applies the rows before this one, if this database is also the target. ``query`` and ``procedure`` can
    raise DatabaseError and ConnectionLostError.
    """

    apply_pending: Callable[[], None]

    def query(self, text: str, values: Mapping[str, Value]) -> Result | None:
        """The first row of a query, by column; None if it returns no row. Parameters are written ``:name`` or ``?``."""
        ...

    def procedure(self, name: str, values: Mapping[str, Value]) -> Result | None:
        """The results of a procedure or function: its output parameters, and RETURN_VALUE."""
        ...

    def close(self) -> None:
        """Release the connection: there are no more queries."""
        ...

    def report(self, text: str, /) -> None:
        """Report a query that failed."""
        ...


@dataclass(slots=True)
class Environment:
    """Facts by the names on @GETENV's page. A fact that is not there is missing.

    ``count``: a statistic of a table (of all tables for an empty name); ``file``: the header of a trail file, by its
    sequence number; ``last_error``: the values of LASTERR; ``queries``: the database in which SQLEXEC runs.
    """

    clock: Clock = field(default_factory=SystemClock)
    process: Facts = field(default_factory=dict)
    count: Callable[[str, str], int | None] = _no_count
    file: Callable[[int], Facts] = _nothing
    database: Callable[[], Facts] = _nothing
    queries: QueryDatabase | None = None
    last_error: dict[str, Value] = field(default_factory=lambda: {"DBERRNUM": 0})
    reported_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """The counts that DELTASTATS last reported."""
