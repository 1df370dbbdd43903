"""COMPARE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.errors import DatabaseError, DiskError, NotFoundError
from ggshell.shell.asking import Answered, table_text
from ggshell.shell.intervals import interval_seconds
from ggshell.shell.registry import command
from ggshell.shell.results import Note, Row
from ggshell.shell.session import Session

if TYPE_CHECKING:
    from ggshell.compare.drill import Difference
    from ggshell.databases.postgres.compare_tables import ComparedTable

_LAG = "5 SEC"
_HEADS = ("table", "kind", "key", "source", "target", "in_flight")
_SHOWN = 10
"""Differences of each table in the text answer; data formats have all."""


@command("COMPARE TO")
def compare(
    session: Session,
    *,
    source: str,
    target: str,
    table: tuple[str, ...] = (),
    into: str = "",
    lag: str = _LAG,
    repair: str = "",
) -> Answered:
    """The rows that differ; a failure when some do."""
    from ggshell.databases.postgres.compare_tables import compare_tables, table_pairs

    connections = _connect(session, source), _connect(session, target)
    try:
        pairs = table_pairs(connections, table or ("*.*",), into, () if table else _own_schemas(session))
        found = list(compare_tables(connections, pairs, interval_seconds(lag), session.wait))
        notes = (_repair(session, repair, found, connections[0]),) if repair else ()
    finally:
        for connection in connections:
            connection.close()
    return _result(found, notes, mended=bool(repair))


def _connect(session: Session, name: str) -> Any:
    """A connection by alias, or by login.  Raises NotFoundError, DatabaseError."""
    from ggshell.databases.postgres.session import connect, connection_info
    from ggshell.shell.commands.database import DEFAULT_DOMAIN
    from ggshell.store.credential import CredentialStore

    if any(sign in name for sign in "@=/"):
        return connect(connection_info(name))
    found = CredentialStore(session.home).resolve(name, DEFAULT_DOMAIN)
    return connect(connection_info(found.userid, found.password))


def _own_schemas(session: Session) -> list[str]:
    """The schema of heartbeats and checkpoint tables, where GLOBALS names one."""
    from ggshell.shell.commands.heartbeat import names_of

    try:
        return [names_of(session).schema]
    except NotFoundError:
        return []


def _repair(session: Session, file: str, found: list[ComparedTable], connection: Any) -> Note:
    from ggshell.databases.postgres.compare_tables import server_time
    from ggshell.databases.postgres.repair import script

    path = session.home.resolve(file)
    text = script([(each.target, each.shape, each.differences) for each in found], server_time(connection))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}", hint="REPAIR another file") from error
    count = sum(each.real for each in found)
    said = (
        f"{count:,} statements are in {path}; read them before you run it." if count else f"{path} has nothing to mend."
    )
    return Note("GGS-00721", said)


def _result(found: list[ComparedTable], notes: tuple[Note, ...], *, mended: bool) -> Answered:
    real, bad = sum(each.real for each in found), [each for each in found if each.problem]
    text = f"{real:,} rows differ" if real else ""
    if bad:
        text += f"{', ' if text else ''}{len(bad)} tables cannot be compared"
    hint = "" if mended else "REPAIR file writes what would mend it"
    errors = (DatabaseError(text, code="GGS-00720", hint=hint),) if text else ()
    rows = [_row(table, each) for table in found for each in table.differences]
    return Answered(_HEADS, rows, _layout(found), notes, errors)


def _row(table: ComparedTable, each: Difference) -> Row:
    names = table.shape.names
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
    key = dict(zip((column.name for column in table.shape.key), each.key, strict=False))
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
            text += f"… and {more:,} more; --format json has them all\n" if more else ""
    return text


def _outcome(table: ComparedTable) -> str:
    if table.problem:
        return table.problem
    if not table.differences:
        return "equal"
    flying = len(table.differences) - table.real
    parts = [f"{table.real:,} differ"] if table.real else []
    parts += [f"{flying:,} in flight"] if flying else []
    parts += [] if table.whole else ["not looked at any further"]
    return ", ".join(parts)
