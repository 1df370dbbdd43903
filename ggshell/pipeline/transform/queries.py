"""SQLEXEC within TABLE and MAP: queries and procedures with parameters from a row, whose results expressions can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from ggshell.errors import ConnectionLostError, DatabaseError, StatementError
from ggshell.language.clauses import Query
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.environment import QueryDatabase, Result
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import State, Value
from ggshell.record.operation import NO_OPERATIONS, OPERATIONS

NOTHING: Result = {}
LONGEST = 255
"""The most bytes of a text in a result, unless MAXVARCHARLEN sets another limit."""


class OnError(StrEnum):
    """What happens if a query fails: its results are missing, it is also reported, or the process ends."""

    IGNORE = "IGNORE"
    REPORT = "REPORT"
    RAISE = "RAISE"
    FINAL = "FINAL"
    FATAL = "FATAL"


class Exec(StrEnum):
    """How often a query runs: per row and statement, per row, per transaction, or once per process."""

    MAP = "MAP"
    SOURCEROW = "SOURCEROW"
    TRANSACTION = "TRANSACTION"
    ONCE = "ONCE"


class _Compiled(NamedTuple):
    query: Query
    parameters: tuple[tuple[str, Node], ...]
    on_error: OnError
    times: Exec
    before_filter: bool
    all_required: bool
    longest: int
    only: frozenset[int] | None
    """The operations that it runs for (ON); None for all."""


class Queries:
    """The queries of one statement for one table."""

    def __init__(self, clauses: Clauses, scope: Scope, database: QueryDatabase | None) -> None:
        if clauses.queries and database is None:
            raise StatementError(
                "SQLEXEC needs a database: this process has no login", where=clauses.place, page="sqlexec"
            )
        self._database = database
        self._queries = [compile_query(query, scope) for query in clauses.queries]
        self._kept: dict[tuple[str, str], Result] = {}

    def __bool__(self) -> bool:
        return bool(self._queries)

    def run(self, rows: Rows, *, before_filter: bool) -> None:
        """Run the queries before or after FILTER and store the results in the rows. Raises DatabaseError."""
        for compiled in self._queries:
            asked = compiled.only is None or rows.io_type in compiled.only
            if asked and compiled.before_filter is before_filter and len(rows):
                rows.results[compiled.query.name.lower()] = self._results(compiled, rows)

    def _results(self, compiled: _Compiled, rows: Rows) -> Sequence[Result]:
        names = [name for name, _ in compiled.parameters]
        columns = [node.evaluate(rows) for _, node in compiled.parameters]
        given = zip(*columns, strict=True) if columns else [()] * len(rows)
        found: list[Result] = []
        for piece, values in zip(rows.pieces, given, strict=True):
            scope = piece.header.xid if compiled.times is Exec.TRANSACTION else ""
            key = (compiled.query.name, scope)
            if compiled.times in (Exec.TRANSACTION, Exec.ONCE) and key in self._kept:
                found.append(self._kept[key])
                continue
            result = self._one(compiled, dict(zip(names, values, strict=True)))
            found.append(result)
            if compiled.times is Exec.TRANSACTION:
                self._kept = {kept: value for kept, value in self._kept.items() if kept[1] in ("", scope)}
            if compiled.times in (Exec.TRANSACTION, Exec.ONCE):
                self._kept[key] = result
        return found

    def _one(self, compiled: _Compiled, values: Mapping[str, Value]) -> Result:
        if self._database is None or (compiled.all_required and State.MISSING in values.values()):
            return NOTHING
        query = compiled.query
        try:
            if query.procedure:
                result = self._database.procedure(query.procedure, values)
            else:
                result = self._database.query(query.query, values)
        except ConnectionLostError:
            raise
        except DatabaseError as error:
            if compiled.on_error not in (OnError.IGNORE, OnError.REPORT):
                error.message = f"SQLEXEC {query.name}: {error.message}"
                raise
            if compiled.on_error is OnError.REPORT:
                self._database.report(f"SQLEXEC {query.name}: {error.message}")
            return NOTHING
        return {name: _short(value, compiled.longest) for name, value in (result or NOTHING).items()}


def _short(value: Value, longest: int) -> Value:
    if isinstance(value, str) and len(value) * 4 > longest:
        return value.encode()[:longest].decode(errors="ignore")
    return value


def compile_query(query: Query, scope: Scope) -> _Compiled:
    """Compile a query with its parameters. Raises StatementError."""
    options = query.options
    return _Compiled(
        query,
        tuple((each.name, scope.compile(each.source)) for each in query.parameters),
        OnError(_word(options.get("error"), OnError.IGNORE)),
        Exec(_word(options.get("exec"), Exec.MAP)),
        "beforefilter" in options,
        _word(options.get("allparams"), "") == "REQUIRED",
        int(options.get("maxvarcharlen", LONGEST)),
        NO_OPERATIONS.union(*(OPERATIONS[f"{name}S"] for name in options["on"])) if "on" in options else None,
    )


def _word(value: object, default: str) -> str:
    return str(value).upper() if value else default
