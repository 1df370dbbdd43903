"""Connects statements about trails to the query engines, and formats their answers as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ggshell.cli.output.tables import CUT, table_text
from ggshell.cli.results import Listing, Note
from ggshell.errors import NotFoundError

if TYPE_CHECKING:
    from ggshell.cli.session import Session
    from ggshell.query.queries.trails import QueriedTrails, TrailSpan
    from ggshell.query.trail_read import HomeKeys
    from ggshell.query.views import QueryAnswer
    from ggshell.record.definition import TableDefinition


def trails_of(session: Session, texts: Sequence[str]) -> QueriedTrails:
    """Return the trails that a statement names, relative to the home. Raises NotFoundError, UsageError."""
    from ggshell.query.queries.trails import trails

    return trails(texts, session.home.root, session.engines, keys=home_keys(session))


def home_keys(session: Session) -> HomeKeys:
    """The home's keys for encrypted trails; the wallet is opened only when a file needs it."""
    from ggshell.groups.home_wallet import wallet_of
    from ggshell.query.trail_read import HomeKeys

    return HomeKeys.of(session.home, wallet_of(session.home))


def span_of(session: Session, trails: QueriedTrails, only: str = "", since: str = "", until: str = "") -> TrailSpan:
    """Return the part of the trails that ONLY, SINCE and UNTIL select."""
    from ggshell.cli.begin import begin_time
    from ggshell.query.queries.trails import TrailSpan

    now = session.clock.now()
    return TrailSpan(begin_time(since, now), begin_time(until, now), definition_of(trails, only).name if only else None)


def definition_of(trails: QueriedTrails, text: str) -> TableDefinition:
    """Return the newest definition of a table in the trails. Raises NotFoundError, which lists the tables found."""
    from ggshell.query.splits import find_definitions
    from ggshell.store_paths import path_of

    return find_definitions(map(path_of, trails.files), text)[-1]


def answered(trails: QueriedTrails, answer: QueryAnswer, empty: str = "") -> Listing:
    """Convert an answer to a result, with notes about data that was not read.

    ``empty``: the error message if there are no rows; an empty text means that no rows are not an error.
    """
    notes = unread(trails)
    if empty and not answer.rows:
        return Listing(answer.columns, answer.rows, "", notes, (NotFoundError(empty),))
    return Listing(answer.columns, answer.rows, answer_text(answer), notes)


def unread(trails: QueriedTrails) -> tuple[Note, ...]:
    """Notes about bytes at the ends of trails that readers may not read yet."""
    from ggshell.query.queries.file_facts import unread_notes

    return tuple(Note("GGS-00710", text) for text in unread_notes(trails.files))


def answer_text(answer: QueryAnswer) -> str:
    """Format an answer as text: a table, the number of rows, and the engine that answered."""
    count = f"{len(answer.rows):,} row{'' if len(answer.rows) == 1 else 's'}"
    table = table_text(answer.columns, answer.rows)
    cut = (
        f"Values that end in {CUT} are cut; --format vertical (or SET FORMAT) shows them whole\n"
        if CUT in table
        else ""
    )
    return f"\n{table}\n{count} ({answer.engine}, {answer.seconds:.2f} s)\n{cut}"
