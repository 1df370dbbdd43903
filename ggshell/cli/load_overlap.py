"""Detects changes that overtake an initial load, so that START can warn before rows are lost.

A change that is applied before its row has arrived is lost: afterwards the load delivers the older row, or a row that
was deleted. HANDLECOLLISIONS does not help, since nothing collides. The load must therefore be applied completely
before changes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ggshell.cli.groups import REPLICAT, View, view
from ggshell.cli.results import Note
from ggshell.cli.session import Session
from ggshell.errors import GgsError
from ggshell.groups.load_state import LoadState
from ggshell.home.checkpoint import GroupKind, SourceType
from ggshell.home.home import Home
from ggshell.monitoring.group_lag import first_unprocessed
from ggshell.types import TrailPosition

if TYPE_CHECKING:
    from ggshell.parameters.process_parameters import LoginParameters


class _Load(NamedTuple):
    """An Extract that runs an initial load, and a Replicat that applies its output."""

    extract: View
    replicat: View


def open_loads(session: Session) -> frozenset[tuple[str, str]]:
    """Return the names of Extract and Replicat of each load that is not completely applied.

    This is called before START, since a small load may be applied when START returns.
    """
    home = session.home
    if not _has_loads(home):
        return frozenset()
    pairs = _load_pairs(home, list(_views(home)))
    return frozenset((load.extract.name, load.replicat.name) for load in pairs if _is_open(home, load))


def overtaken(session: Session, started: Sequence[View], before: frozenset[tuple[str, str]]) -> tuple[Note, ...]:
    """Return a warning for each incomplete load that a running Replicat of changes to the same tables may overtake.

    A load counts as incomplete if it is, or if it was (``before``) when START was called. At least one of the groups
    must be among those just started.
    """
    home = session.home
    if not _has_loads(home):
        return ()
    views = list(_views(home))
    names = {each.name for each in started}
    runs = {each.name for each in views if each.runs}
    notes: list[Note] = []
    for load in _load_pairs(home, views):
        others = [
            each for each in views if each.type in REPLICAT and each.name in runs and not _is_load(home, each, views)
        ]
        for other in others:
            concerned = names & {load.extract.name, load.replicat.name, other.name}
            is_open = (load.extract.name, load.replicat.name) in before or _is_open(home, load)
            if concerned and is_open and _share_tables(home, load.replicat, other):
                notes.append(_note(load, other))
    return tuple(notes)


def _note(load: _Load, other: View) -> Note:
    return Note(
        "GGS-00556",
        f"{other.name} applies changes while {load.replicat.name} has not applied all of the initial load of"
        f" {load.extract.name}: rows that change before they arrive will differ, even with HANDLECOLLISIONS. STOP"
        f" {other.name}; START it when LAG {load.replicat.name} is at EOF.",
    )


def _has_loads(home: Home) -> bool:
    return any(entry.checkpoint is not None and _loads(entry.checkpoint.read.source) for entry in home.groups())


def _loads(source: SourceType) -> bool:
    return source is SourceType.TABLE


def _views(home: Home) -> Iterator[View]:
    """The groups that can be read; INFO reports why others cannot."""
    for entry in home.groups():
        if entry.checkpoint is not None:
            yield view(home, entry)


def _load_pairs(home: Home, views: Sequence[View]) -> Iterator[_Load]:
    for extract in views:
        if extract.type is GroupKind.EXTRACT and _loads(extract.checkpoint.read.source):
            written = _written(home, extract)
            for replicat in views:
                if replicat.type in REPLICAT and home.resolve(replicat.checkpoint.read.trail) in written:
                    yield _Load(extract, replicat)


def _is_load(home: Home, replicat: View, views: Sequence[View]) -> bool:
    return any(load.replicat is replicat for load in _load_pairs(home, views))


def _written(home: Home, extract: View) -> set[Path]:
    """The trails of a load on this machine: those of its last run, and those of its parameter file."""
    from ggshell.groups.receivers import receiver_of
    from ggshell.parameters.loading import load_extract

    trails = [each.trail for each in extract.checkpoint.written_here]
    with suppress(GgsError):  # START reports the error in the file
        named = load_extract(home.parameters(extract.group)).trails
        trails += [each.trail for each in named if not receiver_of(home, each.host, each.trail)]
    return {home.resolve(trail) for trail in trails}


def _is_open(home: Home, load: _Load) -> bool:
    """Whether rows of the load may still arrive."""
    state = LoadState.of(load.extract.checkpoint)
    if load.extract.runs or state is None or not state.complete:
        return True
    read = load.replicat.checkpoint.read
    try:
        return isinstance(read.current, TrailPosition) and first_unprocessed(home, read.trail, read.current) is not None
    except GgsError:
        return True


def _share_tables(home: Home, one: View, other: View) -> bool:
    """Whether two Replicats write to the same tables of the same database, according to their parameter files."""
    from ggshell.parameters.loading import load_replicat

    try:
        files = [load_replicat(home.parameters(each.group)) for each in (one, other)]
        places = [_database(home, each.login) for each in files]
    except GgsError:
        return False
    pairs = ((mine.target, theirs.target) for mine in files[0].maps for theirs in files[1].maps)
    return places[0] == places[1] and any(
        fnmatchcase(mine, theirs) or fnmatchcase(theirs, mine) for mine, theirs in pairs
    )


def _database(home: Home, login: LoginParameters) -> str:
    """The database that a login names, regardless of the user."""
    from ggshell.connectors.login import connection_string
    from ggshell.connectors.registry import connector_for

    found = connection_string(home, login)
    return connector_for(found).address(found)
