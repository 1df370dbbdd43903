"""SQLEXEC within TABLE and MAP: queries and procedures with parameters out of a row, whose results expressions read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from ggshell.columns.clauses import Clauses
from ggshell.columns.nodes import Node
from ggshell.columns.rows import Rows
from ggshell.columns.scope import Scope
from ggshell.columns.values import State, Value
from ggshell.errors import ConnectionLostError, DatabaseError, StatementError
from ggshell.syntax.clauses import Query

Result = Mapping[str, Value]
NOTHING: Result = {}
LONGEST = 255
"""Bytes of a text that a result may have where MAXVARCHARLEN does not say otherwise."""


class OnError(StrEnum):
    """What becomes of a query that fails: its results are missing, the report tells of it too, or the process ends."""

    IGNORE = "IGNORE"
    REPORT = "REPORT"
    RAISE = "RAISE"
    FINAL = "FINAL"
    FATAL = "FATAL"


class Exec(StrEnum):
    """How often a query runs: for each row and statement, for each row, in each transaction, in the process's life."""

    MAP = "MAP"
    SOURCEROW = "SOURCEROW"
    TRANSACTION = "TRANSACTION"
    ONCE = "ONCE"


class QueryDatabase(Protocol):
    """The database that queries run in.  ``settle`` sees to it that earlier rows are there, where they go there.

    ``query`` and ``procedure`` may raise DatabaseError, ConnectionLostError.
    """

    settle: Callable[[], None]

    def query(self, text: str, values: Mapping[str, Value]) -> Result | None:
        """The first row of a query whose parameters are written ``:name`` or ``?``, by column; None when it has none."""
        ...

    def procedure(self, name: str, values: Mapping[str, Value]) -> Result | None:
        """What a procedure or function gives: its parameters that come out, and RETURN_VALUE."""
        ...

    def close(self) -> None:
        """No more queries will come."""
        ...

    def report(self, text: str, /) -> None:
        """Tell of a query that failed."""
        ...


class _Compiled(NamedTuple):
    query: Query
    parameters: tuple[tuple[str, Node], ...]
    on_error: OnError
    times: Exec
    before_filter: bool
    all_required: bool
    longest: int


class Queries:
    """The queries of one statement for one table."""

    def __init__(self, clauses: Clauses, scope: Scope, database: QueryDatabase | None) -> None:
        if clauses.queries and database is None:
            raise StatementError(
                "SQLEXEC needs a database: this process has no login", where=clauses.place, page="sqlexec"
            )
        self._database = database
        self._queries = [_compiled(query, scope) for query in clauses.queries]
        self._kept: dict[tuple[str, str], Result] = {}

    def __bool__(self) -> bool:
        return bool(self._queries)

    def run(self, rows: Rows, *, before_filter: bool) -> None:
        """Run what stands before or behind FILTER; results are set into the rows.  Raises DatabaseError."""
        for compiled in self._queries:
            if compiled.before_filter is before_filter and len(rows):
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


def _compiled(query: Query, scope: Scope) -> _Compiled:
    options = query.options
    return _Compiled(
        query,
        tuple((each.name, scope.compile(each.source)) for each in query.parameters),
        OnError(_word(options.get("error"), OnError.IGNORE)),
        Exec(_word(options.get("exec"), Exec.MAP)),
        "beforefilter" in options,
        _word(options.get("allparams"), "") == "REQUIRED",
        int(options.get("maxvarcharlen", LONGEST)),
    )


def _word(value: object, default: str) -> str:
    return str(value).upper() if value else default
