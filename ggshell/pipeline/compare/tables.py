"""Compares the tables of two databases, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from ggshell.errors import NO_TABLE, ConnectionLostError, DatabaseError, GgsError, NotFoundError, StateError
from ggshell.pipeline.compare.drill import Difference, Pair, TableSide, confirmed, walk
from ggshell.pipeline.compare.portable import Family
from ggshell.plurals import counted
from ggshell.types import TableName, split_name

MOST_DIFFERENCES = 100_000
"""The comparison of a table stops when so many rows still differ after the lag. Such a table should be loaded again."""


class ComparedColumns(Protocol):
    """What is compared of a table: the columns with stored values, and those that identify a row (none: all do)."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def key_names(self) -> tuple[str, ...]: ...

    @property
    def key_is_complete(self) -> bool:
        """Whether every row certainly has a value in each column of the key."""
        ...

    @property
    def families(self) -> Mapping[str, Family]:
        """The families of the columns by name, for a comparison with another kind of database."""
        ...


class _NoColumns(NamedTuple):
    names: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()
    key_is_complete: bool = True
    families: Mapping[str, Family] = MappingProxyType({})


_NONE: Final = _NoColumns()


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """The result for one table. ``problem``: why it could not be compared; ``whole``: it was compared to its end.

    If it was not, the numbers of rows and of differences are lower bounds.
    """

    source: TableName
    target: TableName
    columns: ComparedColumns = _NONE
    source_rows: int = 0
    target_rows: int = 0
    differences: tuple[Difference, ...] = ()
    problem: str = ""
    whole: bool = True

    @property
    def real(self) -> int:
        """The number of rows that certainly differ."""
        return sum(not each.in_flight for each in self.differences)


class ComparedDatabase(Protocol):
    """What a comparison asks of a database. All methods raise DatabaseError."""

    def tables(self, pattern: str) -> list[TableName]:
        """The tables that a pattern names. Raises NotFoundError if there are none."""
        ...

    def own_tables(self) -> set[TableName]:
        """The tables of replication itself, heartbeats and checkpoints, which are separate in each database."""
        ...

    def columns(self, table: TableName) -> ComparedColumns:
        """What is compared of a table. Raises NotFoundError if it does not exist."""
        ...

    def side(self, table: TableName, columns: ComparedColumns, other: ComparedColumns) -> TableSide:
        """A table compared by the source's columns; ``other`` are the other side's, whose types may differ."""
        ...

    def time(self) -> str:
        """The time of the database, for the head of a script."""
        ...

    def can_repair(self, source: ComparedDatabase) -> bool:
        """Whether ``repair_script`` is possible with that source."""
        ...

    def repair_script(self, found: Sequence[ComparedTable], when: str, *, replicated: bool) -> str:
        """The script that makes the tables of this target equal to the source's, if ``can_repair`` is true."""
        ...


class CompareProgress(NamedTuple):
    """How far the comparison of a table is: compared rows, and about how many there are (0: not known yet).

    ``again``: the number of rows that are checked again after the lag; 0 while rows are compared.
    """

    table: TableName
    rows: int = 0
    about: int = 0
    again: int = 0


OnProgress = Callable[[CompareProgress], None]
Databases = tuple[ComparedDatabase, ComparedDatabase]
"""Source and target."""


def table_pairs(databases: Databases, patterns: Iterable[str], target: str) -> list[tuple[TableName, TableName]]:
    """The source tables that patterns name, each with its target table.

    The target table has the same name, or the name that ``target`` gives (``schema.*`` or ``schema.name``). A pattern
    with a wildcard leaves out heartbeat and checkpoint tables, which are separate in each database. Raises
    NotFoundError.
    """
    own = databases[0].own_tables()
    found = ((pattern, name) for pattern in patterns for name in databases[0].tables(pattern))
    wanted = dict.fromkeys(name for pattern, name in found if name not in own or not set("*?") & set(pattern))
    if not wanted:
        raise NotFoundError("there is no table to compare", hint="COMPARE … TABLE schema.*")
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
    databases: Databases,
    pairs: Iterable[tuple[TableName, TableName]],
    lag: float,
    wait: Callable[[float], bool],
    most: int = MOST_DIFFERENCES,
    on_progress: OnProgress = lambda _: None,
) -> Iterator[ComparedTable]:
    """Compare each pair of tables. Differences that may be in flight are checked again after ``lag`` seconds.

    ``on_progress`` is called with the progress.
    """
    for source, target in pairs:
        try:
            on_progress(CompareProgress(source))
            yield _compared(databases, source, target, _Recheck(lag, wait, most), on_progress)
        except (ConnectionLostError, StateError):
            raise
        except GgsError as error:  # of this table; the others are still compared
            yield ComparedTable(source, target, problem=error.message)


class _Recheck(NamedTuple):
    """How differences are checked again: after how many seconds, how to wait for them, and how many may remain."""

    lag: float
    wait: Callable[[float], bool]
    most: int


def _compared(
    databases: Databases,
    source: TableName,
    target: TableName,
    recheck: _Recheck,
    on_progress: OnProgress,
) -> ComparedTable:
    try:
        columns = databases[0].columns(source), databases[1].columns(target)
    except NotFoundError as error:
        if error.code != NO_TABLE:
            raise
        return ComparedTable(source, target, problem=f"there is no table {target} in the target")
    lacking = [name for name in columns[0].names if name not in columns[1].names]
    if lacking:
        return ComparedTable(source, target, problem=f"the target has no column {', '.join(lacking)}")
    pair = Pair(databases[0].side(source, *columns), databases[1].side(target, *columns))
    try:
        rows, lasting, whole = _walked(pair, source, recheck, on_progress, lambda: _require_keys(pair, *columns))
    finally:
        pair.close()
    return ComparedTable(source, target, columns[0], *rows, tuple(lasting), whole=whole)


def _require_keys(pair: Pair, mine: ComparedColumns, theirs: ComparedColumns) -> None:
    """Raise DatabaseError if the source's key does not identify every row. Equal tables are equal without it."""
    names = ", ".join(mine.key_names)
    if not mine.key_is_complete and (nowhere := pair.source.without_key()):
        raise DatabaseError(f"{counted(nowhere, 'row')} of the source without a value in its key ({names})")
    same = mine.key_names == theirs.key_names
    if not (same and theirs.key_is_complete) and (nowhere := pair.target.without_key()):
        raise DatabaseError(f"{counted(nowhere, 'row')} of the target without a value in the source's key ({names})")


def _walked(
    pair: Pair,
    table: TableName,
    recheck: _Recheck,
    on_progress: OnProgress,
    require_keys: Callable[[], None],
) -> tuple[tuple[int, int], list[Difference], bool]:
    """The number of rows on both sides, the differences that remain after the lag, and whether all rows were compared.

    Differences are checked again during the walk, so that any number of rows in flight does not end it. ``require_keys`` is
    called when the rows have to be identified.
    """
    rows, about = (0, 0), 0
    lasting, open_ = list[Difference](), list[Difference]()

    def divided(found: int) -> None:
        nonlocal about
        require_keys()
        about = found
        on_progress(CompareProgress(table, 0, about))

    def checked() -> list[Difference]:
        if open_:
            on_progress(CompareProgress(table, max(rows), about, len(open_)))
        return confirmed(pair, open_, recheck.lag, recheck.wait)

    for part in walk(pair, divided=divided):
        if len(lasting) >= recheck.most:
            return rows, lasting, False
        rows = (rows[0] + part.source_rows, rows[1] + part.target_rows)
        open_ += part.differences
        # Each check waits for the lag, so it is worth a tenth of the limit at least.
        if len(open_) >= max(recheck.most - len(lasting), recheck.most // 10):
            lasting += checked()
            open_ = []
        on_progress(CompareProgress(table, max(rows), about))
    return rows, [*lasting, *checked()], True
