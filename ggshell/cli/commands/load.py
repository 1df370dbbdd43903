"""LOAD."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ggshell.cli.output.tables import table_text
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Note
from ggshell.cli.session import Session
from ggshell.durations import rough_text
from ggshell.plurals import counted

if TYPE_CHECKING:
    from ggshell.pipeline.load.outcome import LoadOutcome, LoadProgress

JOBS = 4
_HEADS = ("table", "rows", "bytes", "seconds", "csn", "outcome")
_MEGABYTE = 1_000_000
_SHORTEST = 1.0


@command("LOAD TO")
def load(
    session: Session,
    *,
    source: str,
    target: str,
    table: tuple[str, ...] = (),
    definitions: bool = False,
    jobs: int = JOBS,
    restart: bool = False,
) -> Listing:
    """Load tables of one database into another; the result shows each table with its CSN."""
    from ggshell.cli.commands.compare import logged_in
    from ggshell.connectors import loading
    from ggshell.pipeline.load.outcome import LoadRequest

    request = LoadRequest(table, definitions, int(jobs), restart)
    with closing(logged_in(session, source)) as here, closing(logged_in(session, target)) as there:
        found = loading.load(here, there, request, session.wait, _ProgressLine(session))
    return Listing(_HEADS, _rows(found), _layout(found), _notes(found))


class _ProgressLine:
    """Shows rows, bytes, per cent and the time left."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._began: tuple[float, float] | None = None

    def __call__(self, found: LoadProgress) -> None:
        now = self._session.clock.steady()
        if not found.whole:
            self._session.progress(found.doing)
            return
        if self._began is None:
            self._began = now, found.share
        begun, before = self._began
        text = (
            f"{found.tables:,} of {counted(found.whole, 'table')}, {found.rows:,} rows, {found.bytes // _MEGABYTE:,} MB"
        )
        text = f"{text}, {int(found.share * 100)} %"
        if now - begun > _SHORTEST and before < found.share < 1:
            text = f"{text}, {rough_text((now - begun) * (1 - found.share) / (found.share - before))} left"
        self._session.progress(f"{text}; {found.doing}" if found.doing else text)


def _rows(found: LoadOutcome) -> list[tuple[object, ...]]:
    return [
        (str(each.table), each.rows, each.bytes, round(each.seconds, 2), each.csn, "kept" if each.kept else "loaded")
        for each in found.tables
    ]


def _layout(found: LoadOutcome) -> str:
    rows, size = sum(each.rows for each in found.tables), sum(each.bytes for each in found.tables)
    total = f"{counted(len(found.tables), 'table')}, {rows:,} rows, {size // _MEGABYTE:,} MB in {found.seconds:.1f} s"
    return f"\n{table_text(_HEADS, _rows(found))}\n{total}\n"


def _notes(found: LoadOutcome) -> tuple[Note, ...]:
    notes = []
    if found.again:
        text = "The definitions of the source have changed since the load was interrupted: everything was loaded again."
        notes.append(Note("GGS-00749", text))
    unlogged = [str(each.table) for each in found.tables if not each.logged]
    if unlogged:
        notes.append(Note("GGS-00754", f"Later changes of unlogged tables are not replicated: {', '.join(unlogged)}."))
    csns = found.csns
    if not csns:
        return (*notes, Note("GGS-00755", "The schemas have no tables: only their definitions were loaded."))
    if len(csns) == 1:
        text = f"The tables contain every change up to CSN {csns[0]}. Next: START REPLICAT group, AFTERCSN {csns[0]}"
        return (*notes, Note("GGS-00748", text))
    text = (
        f"The load was interrupted, so the tables have different CSNs, from {csns[0]} to {csns[-1]}."
        f" Next: START REPLICAT group, AFTERCSN {csns[0]}, with HANDLECOLLISIONS until it has passed {csns[-1]}"
    )
    return (*notes, Note("GGS-00751", text))
