"""A table's columns at a moment, by the definitions and the DDL statements in trails.

The columns in force are those of the last row or of a later DDL statement. The numbers of columns in DDL statements identify
a column that was renamed, and tell it from a dropped column of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.query.dialect import literal
from ggshell.query.pushdown import Condition
from ggshell.query.queries.file_facts import trail_and_number
from ggshell.query.queries.trails import QueriedTrails, SpanCondition, TrailSpan
from ggshell.query.splits import metadata_records
from ggshell.record.ddl import DdlStatement, decode_ddl, join_pairs
from ggshell.record.definition import Column, TableDefinition
from ggshell.store_paths import path_of
from ggshell.types import TableName

DDL: Final = 160
PLACE: Final = (
    "concat(lpad(csn, 20, '0'), ' ', lpad(cast(seqno AS string), 9, '0'), ' ', lpad(cast(rba AS string), 15, '0'))"
)
"""The position of a record as a text that sorts like the records: by CSN, also across trails."""
_NEW_TABLE: Final = frozenset(
    {"CREATE TABLE", "CREATE TABLE AS", "SELECT INTO", "DROP TABLE", "DROP SCHEMA", "DROP OWNED"}
)
"""The commands before which a table of the same name was another one."""


class NameSince(NamedTuple):
    """The name of a column from a place on; an empty name: the column does not exist."""

    place: str
    name: str


Names = tuple[NameSince, ...]


class TableAt(NamedTuple):
    """A table at a moment.

    ``since``: the place of the statement that created or dropped it, before which no row belongs to it; ``names``: the names
    of each column over time, the first one from the beginning.
    """

    definition: TableDefinition
    since: str
    names: tuple[Names, ...]

    def sql_name(self, column: int) -> str:
        """SQL for the name of a column in the record at ``place``."""
        first, *later = self.names[column]
        if not later:
            return literal(first.name)
        cases = " ".join(f"WHEN place >= {literal(place)} THEN {literal(name)}" for place, name in reversed(later))
        return f"CASE {cases} ELSE {literal(first.name)} END"

    def renamed(self, values: Mapping[str, str | None], place: str) -> dict[str, str | None]:
        """Return values in the record at a place under the names that are in force."""
        now = [
            (column.name, _name_at(names, place))
            for column, names in zip(self.definition.columns, self.names, strict=True)
        ]
        return {name: values[then] for name, then in now if then in values}


class _Defined(NamedTuple):
    """A definition in a trail, and where its record is."""

    trail: str
    seqno: int
    rba: int
    definition: TableDefinition


class _Executed(NamedTuple):
    """A DDL statement on the table, and where its record is."""

    place: str
    trail: str
    seqno: int
    rba: int
    statement: DdlStatement


def table_at(trails: QueriedTrails, newest: TableDefinition, moment: SpanCondition) -> TableAt:
    """Return a table at a moment. ``newest``: its newest definition."""
    defined, has_ddl = _definitions(trails, newest.name)
    if not has_ddl and len({each.definition for each in defined}) < 2:
        return TableAt(newest, "", _constant(newest))
    executed = _statements(trails, newest.name, moment) if has_ddl else []
    births = [number for number, each in enumerate(executed) if each.statement.tag in _NEW_TABLE]
    since = executed[births[-1]].place if births else ""
    changes = [each for each in executed[births[-1] if births else 0 :] if each.statement.columns]
    trail, place = _last_row(trails, newest.name, moment)
    seqno, rba = (int(part) for part in place.split()[1:]) if place else (0, 0)
    base = _before(defined, trail, seqno, rba) or (defined[0].definition if defined else newest)
    if not changes:
        return TableAt(base, since, _constant(base))
    last = changes[-1]
    columns = base.columns if place > last.place else _columns(last.statement)
    stages = _stages(changes, _before(defined, last.trail, changes[0].seqno, changes[0].rba), since)
    names = tuple(_over_time(column.name, stages) for column in columns)
    return TableAt(TableDefinition(base.name, columns, _key(base, columns, names)), since, names)


def _definitions(trails: QueriedTrails, table: TableName) -> tuple[list[_Defined], bool]:
    """The definitions of a table in order, and whether the trails have DDL statements."""
    found: list[_Defined] = []
    has_ddl = False
    for file in trails.files:
        trail, seqno = trail_and_number(file)
        for rba, _, definition in metadata_records(path_of(file)):
            has_ddl |= not definition.columns
            if definition.columns and definition.name == table:
                found.append(_Defined(trail, seqno, rba, definition))
    return found, has_ddl


def _statements(trails: QueriedTrails, table: TableName, moment: SpanCondition) -> list[_Executed]:
    """The DDL statements on a table up to a moment, in order."""
    sql = f"SELECT {PLACE} AS place, trail, seqno, rba, columns FROM trail WHERE io_type = {DDL} AND {moment.sql}"
    answer = trails.ask("TRAIL ASOF", sql, [Condition("io_type", "=", DDL)])
    found = [
        _Executed(place, trail, seqno, rba, decode_ddl(join_pairs(pairs)))
        for place, trail, seqno, rba, pairs in answer.rows
    ]
    own = (each for each in found if any(table in (one.name, one.table) for one in each.statement.objects))
    return sorted(own, key=lambda each: each.place)


def _last_row(trails: QueriedTrails, table: TableName, moment: SpanCondition) -> tuple[str, str]:
    """The trail and the place of the table's last row; both empty if there is none."""
    span = TrailSpan(table=table)
    sql = f"SELECT trail, max({PLACE}) AS place FROM trail{span.where} AND {moment.sql} AND io_type <> {DDL} GROUP BY trail"
    rows = trails.ask("TRAIL ASOF", sql, span.conditions).rows
    return max(((str(trail), str(place)) for trail, place in rows), key=lambda row: row[1], default=("", ""))


def _before(defined: Sequence[_Defined], trail: str, seqno: int, rba: int) -> TableDefinition | None:
    """The last definition before a record of a trail; None if there is none."""
    name = Path(trail).name
    there = [each for each in defined if Path(each.trail).name == name and (each.seqno, each.rba) < (seqno, rba)]
    return there[-1].definition if there else None


def _columns(statement: DdlStatement) -> tuple[Column, ...]:
    return tuple(Column(each.name, each.type_name, each.type_id, each.nullable) for each in statement.columns)


class _Stage(NamedTuple):
    """The names of a table's columns by number from a place on."""

    place: str
    names: Mapping[int, str]


def _stages(changes: Sequence[_Executed], before: TableDefinition | None, since: str) -> list[_Stage]:
    """The stages of a table's columns, the first of them before the first statement if that did not create the table."""
    found = [_Stage(each.place, {column.number: column.name for column in each.statement.columns}) for each in changes]
    if before is not None and changes[0].place != since:
        return [_Stage("", _numbered(before, found[0].names)), *found]
    return found


def _numbered(before: TableDefinition, after: Mapping[int, str]) -> dict[int, str]:
    """The columns before a statement by number: by their names, or by their order if a statement only renames columns."""
    numbers = {name: number for number, name in after.items()}
    names = [column.name for column in before.columns]
    if len(names) == len(after):
        rest = iter([number for number, name in after.items() if name not in names])
        return {numbers[name] if name in numbers else next(rest): name for name in names}
    return {numbers[name]: name for name in names if name in numbers}


def _over_time(name: str, stages: Sequence[_Stage]) -> Names:
    """The names over time of the column that has a name in the last stage."""
    number = next((number for number, each in stages[-1].names.items() if each == name), None)
    if number is None:
        return (NameSince("", name),)
    found: list[NameSince] = []
    for stage in stages:
        then = stage.names.get(number, "")
        if not found or found[-1].name != then:
            found.append(NameSince(stage.place if found else "", then))
    return tuple(found)


def _key(base: TableDefinition, columns: Sequence[Column], names: Sequence[Names]) -> tuple[int, ...]:
    """The key of a definition as indexes of these columns, by their present or earlier names; empty if one is dropped."""
    wanted = [base.columns[index].name for index in base.key]
    every = [{column.name, *(each.name for each in own)} for column, own in zip(columns, names, strict=True)]
    found = [next((number for number, own in enumerate(every) if name in own), -1) for name in wanted]
    return tuple(found) if -1 not in found else ()


def _constant(definition: TableDefinition) -> tuple[Names, ...]:
    return tuple((NameSince("", column.name),) for column in definition.columns)


def _name_at(names: Names, place: str) -> str:
    return next(each.name for each in reversed(names) if each.place <= place)
