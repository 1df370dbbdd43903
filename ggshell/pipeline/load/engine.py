"""Loads the tables of a snapshot into a target: checks, definitions, rows, indexes, and what follows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ggshell.errors import ConflictError, DatabaseError, NotFoundError
from ggshell.pipeline.load.databases import (
    NO_DEFINITIONS,
    Definitions,
    LoadSnapshot,
    LoadTarget,
    SourceTable,
    TableRecord,
    TargetTable,
)
from ggshell.pipeline.load.outcome import LoadedTable, LoadOutcome, LoadRequest
from ggshell.pipeline.load.schedule import Schedule
from ggshell.pipeline.load.tasks import CopyTask, RunTask
from ggshell.pipeline.load.work import Work
from ggshell.types import TableName

LEAST_PART_BYTES: Final = 64 << 20
MOST_PART_BYTES: Final = 512 << 20
_SHOWN: Final = 10
_AGAIN: Final = (
    "RESTART empties tables that an earlier load has filled; empty other tables yourself, or name other tables in TABLE"
)


class Loading(NamedTuple):
    """A load that is about to begin. ``part_bytes``: how large a part of a table is; None to decide by the tables."""

    snapshot: LoadSnapshot
    target: LoadTarget
    request: LoadRequest
    work: Work
    now: Callable[[], float]
    part_bytes: int | None = None

    def run(self) -> LoadOutcome:
        """Load everything. Raises DatabaseError, ConflictError, NotFoundError, ConnectionLostError, ProcessError."""
        began = self.now()
        tables = self.snapshot.tables()
        definitions = self.snapshot.definitions() if self.request.definitions else NO_DEFINITIONS
        if not tables and not definitions.sum:
            raise NotFoundError("there is no table to load", hint="LOAD … TABLE schema.*")
        _refuse_secured([each.name for each in tables if each.secured], "the source")
        self._check_roles(definitions)
        if not self.target.books.lock():
            raise ConflictError(
                "another LOAD is running into this database", code="GGS-00747", hint="wait until it has ended"
            )
        again = self._begin_again(tables, definitions)
        known: Mapping[TableName, TableRecord] = self.target.books.tables()
        self._check_target(tables, known, definitions)
        self.target.books.create()
        self._define(definitions)
        kept = _kept(tables, known)
        copies = self._copies(tables, known, kept)
        self.work.begin(tables, kept)
        self._fill(tables, definitions, copies)
        found = self.target.books.tables()
        return LoadOutcome(tuple(_loaded(each, found[each.name], kept) for each in tables), self.now() - began, again)

    def _check_roles(self, definitions: Definitions) -> None:
        missing = self.target.missing_roles(definitions.roles)
        if missing:
            raise NotFoundError(
                f"the definitions name roles that do not exist in the target: {', '.join(missing)}",
                code="GGS-00744",
                hint="create them in the target with CREATE ROLE, and run LOAD again",
            )

    def _begin_again(self, tables: Sequence[SourceTable], definitions: Definitions) -> bool:
        """Remove what an earlier load has done, if that is asked for or its definitions have changed since."""
        books = self.target.books
        before = books.definitions()
        changed = before is not None and bool(definitions.sum) and before[0] != definitions.sum
        if before is not None and definitions.sum and (changed or self.request.restart):
            self.target.remove(before[1])
        elif self.request.restart:
            for name in {each.name for each in tables} & set(books.tables()):
                self.target.empty(name)
                books.forget_entries([_analysis(name)])
        return changed

    def _check_target(
        self, tables: Sequence[SourceTable], known: Mapping[TableName, TableRecord], definitions: Definitions
    ) -> None:
        there = self.target.tables(each.name for each in tables)
        if definitions.sum and self.target.books.definitions() is None:
            _refuse(
                there, "already exist in the target", "drop them, or run LOAD without DEFINITIONS to load into them"
            )
            return
        if not definitions.sum:
            _check_columns(tables, there)
        filled = [name for name, table in there.items() if not table.empty and name not in known]
        _refuse(filled, "are not empty in the target", _AGAIN)
        secured = [name for name, table in there.items() if table.secured]
        _refuse_secured(secured, "the target")
        firing = [] if self.target.silent() else [name for name, table in there.items() if table.fires]
        if firing:
            raise DatabaseError(
                f"triggers of the target would fire for {_names(firing)}: the user may not suppress them",
                code="GGS-00752",
                hint="GRANT SET ON PARAMETER session_replication_role TO the user of the target",
            )

    def _define(self, definitions: Definitions) -> None:
        """Create schemas, types and tables, as far as an interrupted load has not done so."""
        if not definitions.sum:
            return
        self.target.books.record_definitions(definitions.sum, definitions.removal)
        done = self.target.books.entries()
        self.work.run(Schedule((), (), [task for task in definitions.before if task.key not in done]), "definitions")

    def _copies(
        self, tables: Sequence[SourceTable], known: Mapping[TableName, TableRecord], kept: set[TableName]
    ) -> list[CopyTask]:
        """The copies of the tables that are not kept. What an interrupted load has left of them is removed."""
        there = self.target.tables(each.name for each in tables)
        size = self.part_bytes or part_size(tables, self.request.jobs)
        found: list[CopyTask] = []
        for table in tables:
            if table.name in kept:
                continue
            if table.name in known:
                self.target.empty(table.name)
            self.target.books.forget_entries([_analysis(table.name)])
            found += self._parts(table, there[table.name], size)
        return found

    def _parts(self, table: SourceTable, there: TargetTable, size: int) -> list[CopyTask]:
        count = max(1, math.ceil(table.bytes / size)) if self.snapshot.divides else 1
        count = min(count, max(1, table.blocks))
        task = CopyTask(
            table.name,
            tuple(name for name, _ in table.columns),
            0,
            count,
            str(self.snapshot.csn),
            table.bytes,
            binary=table.portable and set(table.columns) <= set(there.columns),
            freeze=count == 1 and not there.referenced,
            encoding=self.snapshot.encoding,
        )
        if count == 1:
            return [task]
        edges = [table.blocks * number // count for number in range(count)]
        ends = [*edges[1:], None]
        return [
            task._replace(part=number, blocks=(first, end), bytes=table.bytes // count)
            for number, (first, end) in enumerate(zip(edges, ends, strict=True))
        ]

    def _fill(
        self,
        tables: Sequence[SourceTable],
        definitions: Definitions,
        copies: Sequence[CopyTask],
    ) -> None:
        done = self.target.books.entries()
        analyses = [
            RunTask(_analysis(each.name), f"statistics of {each.name}", self.target.analyze(each.name), 0, each.name)
            for each in tables
        ]
        wanted = [task for task in (*definitions.after, *analyses) if task.key not in done]
        self.work.run(Schedule(copies, [task for task in wanted if task.table is not None]), "indexes")
        ordered = [task for task in wanted if task.table is None]
        ordered += [task for task in self._closing(definitions) if task.key not in done]
        self.work.run(Schedule((), (), ordered), "constraints")

    def _closing(self, definitions: Definitions) -> list[RunTask]:
        """What needs all rows: materialized views, the statistics of partitioned tables, and the values of sequences."""
        views = self.snapshot.views() if definitions.sum else ()
        parents = [
            RunTask(_analysis(name), f"statistics of {name}", self.target.analyze(name, parent=True))
            for name in self.snapshot.parents()
        ]
        return [*views, *parents, *self.snapshot.sequences(every=bool(definitions.sum))]


def _kept(tables: Sequence[SourceTable], known: Mapping[TableName, TableRecord]) -> set[TableName]:
    """The tables that an earlier load has completed; partitions only if all those of a table are, as of the same CSN.

    The log has the changes of partitions under the name of the root, so they can only be applied from one CSN on.
    """
    complete = {name: record.csn for name, record in known.items() if record.complete}
    csns: dict[TableName, set[str]] = {}
    for each in tables:
        csns.setdefault(each.root or each.name, set()).add(complete.get(each.name, ""))
    whole = {root for root, found in csns.items() if len(found) == 1 and "" not in found}
    return {each.name for each in tables if (each.root or each.name) in whole}


def part_size(tables: Sequence[SourceTable], jobs: int) -> int:
    """How many bytes of a table one task copies: a table that is larger than the share of one job is divided.

    A whole table can be written frozen, so a table is not divided into small parts."""
    share = math.ceil(sum(each.bytes for each in tables) / jobs)
    return min(MOST_PART_BYTES, max(LEAST_PART_BYTES, share))


def _analysis(table: TableName) -> str:
    return f"statistics {table}"


def _loaded(table: SourceTable, record: TableRecord, kept: set[TableName]) -> LoadedTable:
    return LoadedTable(
        table.name, record.rows, record.bytes, record.seconds, record.csn, table.name in kept, table.logged
    )


def _names(tables: Iterable[TableName]) -> str:
    names = sorted(map(str, tables))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _refuse_secured(tables: Sequence[TableName], where: str) -> None:
    if tables:
        raise DatabaseError(
            f"row security of {where} applies to the user for {_names(tables)}",
            code="GGS-00745",
            hint="ALTER ROLE … BYPASSRLS, or use the alias of another user",
        )


def _refuse(tables: Iterable[TableName], what: str, hint: str) -> None:
    if names := list(tables):
        raise ConflictError(f"these tables {what}: {_names(names)}", code="GGS-00740", hint=hint)


def _check_columns(tables: Sequence[SourceTable], there: Mapping[TableName, TargetTable]) -> None:
    missing = [each.name for each in tables if each.name not in there]
    if missing:
        raise NotFoundError(
            f"the target does not have these tables: {_names(missing)}",
            code="GGS-00741",
            hint="create them, or use DEFINITIONS to create everything that the source has",
        )
    for table in tables:
        names = {name for name, _ in there[table.name].columns}
        lacking = [name for name, _ in table.columns if name not in names]
        if lacking:
            raise NotFoundError(
                f"table {table.name} has no column {', '.join(lacking)} in the target",
                code="GGS-00753",
                hint="add it in the target with ALTER TABLE",
            )
