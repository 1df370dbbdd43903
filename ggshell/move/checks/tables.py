"""Tables and sequences: what of them a move cannot carry, carries slowly, or carries only with the load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ggshell.connectors.move_facts import Names, TableFacts, TableKey, TableKind
from ggshell.move.checks.sides import Sides
from ggshell.move.findings import ERROR, INFO, WARNING, Finding, listed, subject_of

CHECKS_GENERATED: Final = 18
"""The version from which an UPDATE fails if an unpublished generated column is in the replica identity."""
STORED_ONLY: Final = 18
"""The version from which a generated column can be virtual."""
NEARLY_USED: Final = 0.9
"""The used part of a sequence from which it is reported."""
_ROWS: Final = (TableKind.TABLE, TableKind.PARTITIONED)


def _names_where(tables: Sequence[TableFacts], condition: Callable[[TableFacts], bool]) -> tuple[str, ...]:
    return tuple(str(table.name) for table in tables if condition(table))


def _uncaptured(table: TableFacts, major: int) -> bool:
    """Whether no replica identity lets clients change the table once it is captured."""
    return table.key is TableKey.NONE and table.generated and major >= CHECKS_GENERATED


def keys(sides: Sides) -> Iterator[Finding]:
    """What identifies the rows of each table."""
    moved = [each for each in sides.source.tables if each.kind in _ROWS and each.logged and not each.partition]
    whole = [each for each in moved if each.key is TableKey.NONE]
    if names := _names_where(whole, lambda each: _uncaptured(each, sides.source.server.major)):
        text = f"{listed(names)}: neither a key nor REPLICA IDENTITY FULL is possible, because of generated columns"
        action = "create a primary key on columns that are not generated"
        yield Finding(ERROR, "GGS-01046", subject_of(names, "table"), text, action, names)
    if names := _names_where(whole, lambda each: not _uncaptured(each, sides.source.server.major)):
        rows = max(each.rows for each in whole)
        text = f"{listed(names)}: no primary key and no unique index that can identify rows, so the whole old row is logged,"
        text = f"{text} and each UPDATE and DELETE reads the table in the target (up to about {max(rows, 0):,} rows)"
        action = "create a primary key, or a unique index on columns that are NOT NULL and not deferrable"
        yield Finding(WARNING, "GGS-01047", subject_of(names, "table"), text, action, names)
    if names := _names_where(
        moved, lambda each: each.key is TableKey.UNIQUE and each.identity in ("default", "nothing")
    ):
        text = f"{listed(names)}: no primary key; TRANDATA logs the whole old row although a unique index exists"
        action = "ALTER TABLE … REPLICA IDENTITY USING INDEX, or make the index the primary key"
        yield Finding(INFO, "GGS-01048", subject_of(names, "table"), text, action, names)
    if names := _names_where(moved, lambda each: each.key is not TableKey.NONE and each.identity == "full"):
        text = f"{listed(names)}: REPLICA IDENTITY FULL, so each UPDATE and DELETE logs the whole old row"
        yield Finding(INFO, "GGS-01049", subject_of(names, "table"), text, "", names)


def unlogged(sides: Sides) -> Iterator[Finding]:
    """Unlogged tables: the load has their rows, but the log has no changes."""
    if names := _names_where(sides.source.tables, lambda each: each.kind in _ROWS and not each.logged):
        text = f"{listed(names)}: unlogged; the rows come with the load, later changes do not"
        action = "ALTER TABLE … SET LOGGED before the move, or load these tables again after the switch"
        yield Finding(WARNING, "GGS-01050", subject_of(names, "unlogged table"), text, action, names)


def columns(sides: Sides) -> Iterator[Finding]:
    """Generated and identity columns, whose values the target makes itself or takes over."""
    tables = [each for each in sides.source.tables if each.kind in _ROWS]
    if names := _names_where(tables, lambda each: each.generated):
        text = f"{listed(names)}: the target computes generated columns itself"
        action = "make sure that their functions give the same results there: COMPARE leaves such columns out"
        yield Finding(INFO, "GGS-01051", subject_of(names, "table"), text, action, names)
    if names := _names_where(tables, lambda each: each.numbered):
        text = f"{listed(names)}: identity columns keep their values, and the switch sets their sequences"
        yield Finding(INFO, "GGS-01052", subject_of(names, "table"), text, "", names)


def sequences(sides: Sides) -> Iterator[Finding]:
    """Sequences near their end: the values at the target are set ahead of those in the source."""
    near = []
    for each in sides.source.facts.sequences():
        used = abs(each.last - each.start) / max(1, abs(each.end - each.start))
        if used >= NEARLY_USED:
            near.append(f"{each.name} ({used:.1%} used)")
    if near:
        text = f"sequences are near their last value: {listed(near)}"
        action = (
            "change the type of the column to bigint in the source first: it is an ALTER TABLE that rewrites the table"
        )
        yield Finding(WARNING, "GGS-01053", subject_of(near, "sequence"), text, action, tuple(near))


def inherited(sides: Sides) -> Iterator[Finding]:
    """Tables that inherit from others, which are not partitions."""
    if names := _names_where(sides.source.tables, lambda each: each.inherits):
        text = f"{listed(names)}: inherited tables are moved one by one, each with its own rows"
        yield Finding(INFO, "GGS-01054", subject_of(names, "table"), text, "", names)


def foreign(sides: Sides) -> Iterator[Finding]:
    """Foreign tables."""
    if names := _names_where(sides.source.tables, lambda each: each.kind is TableKind.FOREIGN):
        text = f"{listed(names)}: of a foreign table only the definition is moved; its rows are not moved"
        action = "make sure that the target reaches the foreign server"
        yield Finding(WARNING, "GGS-01055", subject_of(names, "foreign table"), text, action, names)


def views(sides: Sides) -> Iterator[Finding]:
    """Materialized views."""
    if names := _names_where(sides.source.tables, lambda each: each.kind is TableKind.MATERIALIZED_VIEW):
        text = f"{listed(names)}: materialized views are not replicated"
        action = "REFRESH MATERIALIZED VIEW in the target after the load and again before or after the switch"
        yield Finding(INFO, "GGS-01056", subject_of(names, "materialized view"), text, action, names)


def triggers(sides: Sides) -> Iterator[Finding]:
    """Triggers and rules that fire while changes are applied."""
    if names := tuple(sides.source.facts.names(Names.ALWAYS_TRIGGERS)):
        text = f"{listed(names)}: enabled as ALWAYS or REPLICA, so they fire a second time when a change is applied"
        action = "ENABLE TRIGGER (without ALWAYS) before the move, unless the trigger must fire for applied changes"
        yield Finding(WARNING, "GGS-01057", subject_of(names, "trigger"), text, action, names)


def virtual(sides: Sides) -> Iterator[Finding]:
    """Virtual generated columns and a target that does not support them, so a switch back to it is not possible."""
    if sides.target.server.major >= STORED_ONLY:
        return
    if names := _names_where(sides.source.tables, lambda each: each.virtual):
        text = f"{listed(names)}: virtual generated columns require PostgreSQL {STORED_ONLY} at the target"
        yield Finding(ERROR, "GGS-01058", subject_of(names, "table"), text, "make them STORED", names)
