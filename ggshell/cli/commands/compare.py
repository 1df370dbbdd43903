"""COMPARE."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from ggshell.cli.output.tables import table_text
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Note, Row
from ggshell.cli.session import Session
from ggshell.errors import DatabaseError, StateError
from ggshell.files import disk_errors
from ggshell.plurals import counted
from ggshell.progress_text import progress_text

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn
    from ggshell.pipeline.compare.drill import Difference
    from ggshell.pipeline.compare.tables import ComparedTable, CompareProgress, Databases
    from ggshell.types import TableName

_LAG = 5.0
_HEADS = ("table", "kind", "key", "source", "target", "in_flight")
_REPAIR: Final = "use REPAIR file to write a script that makes the target match the source"
_LOAD: Final = "load a table that differs again with an initial load"
_SHOWN = 10
"""The maximum number of differences per table in the text result; the data formats show all of them."""


@command("COMPARE TO")
def compare(
    session: Session,
    *,
    source: str,
    target: str,
    table: tuple[str, ...] = (),
    into: str = "",
    lag: float = _LAG,
    repair: str = "",
    replicate: bool = False,
) -> Listing:
    """Show the rows that differ; the command fails if there are any."""
    from ggshell.pipeline.compare.tables import compare_tables, table_pairs

    with closing(logged_in(session, source)) as here, closing(logged_in(session, target)) as there:
        databases = here.comparison(lambda: session.engines), there.comparison(lambda: session.engines)
        can_repair = databases[1].can_repair(databases[0])
        if repair and not can_repair:
            raise StateError("REPAIR requires two databases of the same kind", hint="run COMPARE without REPAIR")
        pairs = table_pairs(databases, table or ("*.*",), into)
        line = _ProgressLine(session, len(pairs), float(lag))
        found = list(compare_tables(databases, pairs, float(lag), session.wait, on_progress=line))
        notes = _repair(session, repair, found, databases, replicated=replicate) if repair else ()
        remedy = _REPAIR if can_repair else _LOAD
        if here.conninfo == there.conninfo and any(left == right for left, right in pairs):
            notes = (
                Note("GGS-00722", f"{source} and {target} are the same database: tables are compared with themselves."),
                *notes,
            )
    return _result(found, notes, "" if repair else remedy)


class _ProgressLine:
    """Shows the progress of each table, with the time left."""

    def __init__(self, session: Session, tables: int, lag: float) -> None:
        self._session = session
        self._tables = tables
        self._lag = lag
        self._number = 0
        self._began = 0.0
        self._table: TableName | None = None

    def __call__(self, found: CompareProgress) -> None:
        now = self._session.clock.steady()
        if found.table != self._table:
            self._table, self._number, self._began = found.table, self._number + 1, now
        text = f"{found.table}, table {self._number} of {self._tables}"
        if found.about:
            rows = progress_text(found.rows, found.about, "rows", now - self._began, estimated=True)
            text = f"{text}: {rows}"
        if found.again:
            text = f"{text}; {counted(found.again, 'row')} checked again after {self._lag:g} s"
        self._session.progress(text)


def logged_in(session: Session, name: str) -> LoggedIn:
    """Connect with an alias, a login or the location of a lake. Raises NotFoundError, DatabaseError."""
    from ggshell.cli.commands.database import login_of_alias, opened

    return opened(session, name) if any(sign in name for sign in "@=/:") else login_of_alias(session, name)


def _repair(
    session: Session, file: str, found: list[ComparedTable], databases: Databases, *, replicated: bool
) -> tuple[Note, ...]:
    """Write the repair script; returns a note to review it, unless it contains no statements."""
    path = session.home.resolve(file)
    text = databases[1].repair_script(found, databases[0].time(), replicated=replicated)
    with disk_errors("write", path, hint="specify another file in REPAIR"):
        path.write_text(text, encoding="utf-8")
    count = sum(each.real for each in found)
    said = f"{count:,} statements written to {path}; review the script before you run it."
    return (Note("GGS-00721", said),) if count else ()


def _result(found: list[ComparedTable], notes: tuple[Note, ...], remedy: str) -> Listing:
    text, cut, hint = _summary(found), [each for each in found if not each.whole], remedy
    if not any(each.real for each in found):
        hint = "check the names in TABLE and INTO, and the columns of both tables"
    if cut:
        hint = (
            "load such a table again with an initial load"
            if any(each.real for each in cut)
            else "run COMPARE again with a longer LAG"
        )
    errors = (DatabaseError(text, code="GGS-00720", hint=hint),) if text else ()
    rows = [_row(table, each) for table in found for each in table.differences]
    return Listing(_HEADS, rows, _layout(found), notes, errors)


def _summary(found: list[ComparedTable]) -> str:
    """What makes the command fail; empty if all tables were compared to their end and no row certainly differs."""
    real, bad = sum(each.real for each in found), sum(bool(each.problem) for each in found)
    cut = [str(each.target) for each in found if not each.whole]
    parts = [f"{real:,} row{'' if real == 1 else 's'} differ{'s' if real == 1 else ''}"] if real else []
    parts += [f"{bad} table{'' if bad == 1 else 's'} cannot be compared"] if bad else []
    text = ", ".join(parts)
    if not cut:
        return text
    return f"{'at least ' if real else ''}{text}{'; ' if text else ''}not compared further: {', '.join(cut)}"


def _row(table: ComparedTable, each: Difference) -> Row:
    names = table.columns.names
    whole = each.source is None or each.target is None
    sides: list[dict[str, str | None] | None] = []
    for mine, other in ((each.source, each.target), (each.target, each.source)):
        sides.append(
            None
            if mine is None
            else {
                name: value
                for place, (name, value) in enumerate(zip(names, mine, strict=True))
                if whole or other is None or other[place] != value
            }
        )
    key = dict(zip(table.columns.key_names, each.key, strict=False))
    return (str(table.target), str(each.kind), key, *sides, each.in_flight)


def _layout(found: list[ComparedTable]) -> str:
    heads = ("table", "source rows", "target rows", "outcome")
    rows = [(str(each.target), each.source_rows, each.target_rows, _outcome(each)) for each in found]
    text = f"\n{table_text(heads, rows)}"
    for table in found:
        if table.differences:
            shown = [_row(table, each)[1:] for each in table.differences[:_SHOWN]]
            more = len(table.differences) - len(shown)
            text += f"\n{table.target}\n\n{table_text(_HEADS[1:], shown)}"
            text += f"… and {more:,} more; use --format json to show all\n" if more else ""
    return text


def _outcome(table: ComparedTable) -> str:
    if table.problem:
        return table.problem
    flying = len(table.differences) - table.real
    parts = [f"{'' if table.whole else 'at least '}{table.real:,} differ"] if table.real else []
    parts += [f"{flying:,} in flight"] if flying else []
    parts += [] if table.whole else ["not compared further"]
    return ", ".join(parts) or "equal"
