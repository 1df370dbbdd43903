"""Tables of two PostgreSQL databases, compared one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ggshell.compare.drill import Difference, Pair, walk
from ggshell.compare.recheck import confirmed
from ggshell.databases.postgres.compare_side import PostgresTableSide, Shape, shape_of
from ggshell.databases.postgres.describe import resolve
from ggshell.databases.postgres.session import execute
from ggshell.errors import NotFoundError
from ggshell.types import TableName, split_name

if TYPE_CHECKING:
    import psycopg

MOST_DIFFERENCES = 100_000
"""With so many differences in a table its comparison ends: it is to be loaded anew, not repaired."""
Connections = tuple["psycopg.Connection[Any]", "psycopg.Connection[Any]"]


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table and what became of it; ``problem``: why it could not be compared; ``whole``: all of it was."""

    source: TableName
    target: TableName
    shape: Shape
    source_rows: int = 0
    target_rows: int = 0
    differences: tuple[Difference, ...] = ()
    problem: str = ""
    whole: bool = True

    @property
    def real(self) -> int:
        """How many rows differ for sure."""
        return sum(not each.in_flight for each in self.differences)


def table_pairs(
    connections: Connections, patterns: Iterable[str], target: str, left_out: Iterable[str] = ()
) -> list[tuple[TableName, TableName]]:
    """Source and target tables: those that patterns name, in the target under the same names, or as ``target`` says
    (``schema.*`` or ``schema.name``).  ``left_out`` are schemas.  Raises NotFoundError."""
    names = dict.fromkeys(name for pattern in patterns for name in resolve(connections[0], pattern))
    wanted = [name for name in names if name.owner not in set(left_out)]
    if not wanted:
        raise NotFoundError("no table is to be compared", hint="COMPARE … TABLE schema.*")
    return [(name, _target_name(name, target)) for name in wanted]


def _target_name(name: TableName, pattern: str) -> TableName:
    if not pattern:
        return name
    owner, _, table = pattern.rpartition(".")
    schema = split_name(owner or pattern)[0]
    if not owner or table == "*":
        return TableName(name.owner if schema == "*" else schema, name.name)
    return TableName(schema, split_name(table)[0])


def compare_tables(
    connections: Connections,
    pairs: Iterable[tuple[TableName, TableName]],
    lag: float,
    wait: Callable[[float], bool],
    most: int = MOST_DIFFERENCES,
) -> Iterator[ComparedTable]:
    """Each pair of tables; differences that are in flight are looked at again after ``lag`` seconds."""
    for source, target in pairs:
        yield _compared(connections, source, target, lag, wait, most)


def _compared(
    connections: Connections,
    source: TableName,
    target: TableName,
    lag: float,
    wait: Callable[[float], bool],
    most: int,
) -> ComparedTable:
    try:
        shapes = shape_of(connections[0], source), shape_of(connections[1], target)
    except NotFoundError:
        return ComparedTable(source, target, Shape(()), problem=f"there is no table {target} in the target")
    lacking = [name for name in shapes[0].names if name not in shapes[1].names]
    if lacking:
        return ComparedTable(source, target, Shape(()), problem=f"the target has no column {', '.join(lacking)}")
    there = PostgresTableSide(connections[1], target, shapes[0], shapes[1])
    keys = [tuple(column.name for column in shape.key) for shape in shapes]
    if keys[0] != keys[1] and (nowhere := there.without_key()):
        text = f"{nowhere:,} rows of the target have no value in the source's key ({', '.join(keys[0])})"
        return ComparedTable(source, target, shapes[0], problem=text)
    pair = Pair(PostgresTableSide(connections[0], source, shapes[0], shapes[1]), there)
    rows, found = [0, 0], list[Difference]()
    try:
        for part in walk(pair):
            rows = [rows[0] + part.source_rows, rows[1] + part.target_rows]
            found += part.differences
            if len(found) >= most:
                break
        whole = len(found) < most
        real = confirmed(pair, found[:most], lag, wait) if found else []
    finally:
        pair.close()
    return ComparedTable(source, target, shapes[0], rows[0], rows[1], tuple(real), whole=whole)


def server_time(connection: psycopg.Connection[Any]) -> str:
    """The database's time, for the head of a script."""
    return str(execute(connection, "SELECT date_trunc('second', now())::text")[0][0])
