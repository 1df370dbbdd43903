"""LOAD between two logins: what the statement and ``ggshell move`` call."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from ggshell.errors import ConflictError, StateError, WaitingDdlError
from ggshell.pipeline.load.engine import Loading
from ggshell.pipeline.load.outcome import LoadOutcome, LoadRequest, OnProgress
from ggshell.pipeline.load.pool import Pool
from ggshell.pipeline.load.work import Work

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn


ATTEMPTS: Final = 5
"""How often a load takes a snapshot while DDL of other sessions waits for its locks."""


def load(
    source: LoggedIn,
    target: LoggedIn,
    request: LoadRequest,
    pause: Callable[[float], bool],
    on_progress: OnProgress = lambda _: None,
    part_bytes: int | None = None,
) -> LoadOutcome:
    """Load tables of one database into another.

    ``pause`` waits for some seconds and returns true if the load is to end. Raises DatabaseError, ConflictError,
    NotFoundError, ConnectionLostError, ProcessError, and StateError for databases of different kinds. After any of them,
    the same request continues: complete tables are kept.
    """
    if source.connector is not target.connector:
        raise StateError(
            f"LOAD requires two databases of the same kind, not {source.connector.title} and {target.connector.title}"
        )
    if source.conninfo == target.conninfo:
        raise ConflictError("LOAD requires two different databases", hint="use another alias as the target")
    for _ in range(ATTEMPTS):
        with suppress(WaitingDdlError):
            return _load_once(source, target, request, pause, on_progress, part_bytes)
    raise WaitingDdlError(
        "concurrent DDL keeps changing the source tables",
        hint="stop the DDL, then run LOAD again",
    )


def _load_once(
    source: LoggedIn,
    target: LoggedIn,
    request: LoadRequest,
    pause: Callable[[float], bool],
    on_progress: OnProgress,
    part_bytes: int | None,
) -> LoadOutcome:
    """Load from one snapshot. Raises WaitingDdlError if it must be another one; complete tables are kept."""
    with (
        closing(Pool(source.connector.load_program, request.jobs)) as pool,
        closing(source.load_snapshot(request.tables, target, pause)) as snapshot,
        closing(target.load_target(snapshot.setup)) as into,
    ):
        pool.set_up(into.job_setup(snapshot.setup))
        return Loading(snapshot, into, request, Work(pool, pause, on_progress), time.monotonic, part_bytes).run()
