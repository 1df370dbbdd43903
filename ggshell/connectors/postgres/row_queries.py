"""SQLEXEC's queries and procedures in PostgreSQL. They run on a separate connection, each in its own transaction.

They see committed data only. ``apply_pending`` is called first, so that the changes of earlier trail rows are committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import session
from ggshell.errors import ConnectionLostError, DatabaseError
from ggshell.pipeline.transform.environment import Result
from ggshell.pipeline.transform.values import State, Value
from ggshell.types import TableName, quote, quote_table, split_name

if TYPE_CHECKING:
    import psycopg

_PARAMETER = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\"|::)|:([A-Za-z_]\w*|\d+)|(\?)|(%)")
_FIND = """
SELECT n.nspname, p.prokind, coalesce(p.proargnames, '{}'), coalesce(p.proargmodes::text[], '{}')
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE p.proname = %s AND CASE WHEN %s = '' THEN pg_function_is_visible(p.oid) ELSE n.nspname = %s END
 ORDER BY p.oid LIMIT 1
"""


class _Routine(NamedTuple):
    """A procedure or function: its name as SQL, whether CALL runs it, its arguments' names and modes (i, o, b, t)."""

    text: str
    called: bool
    arguments: tuple[tuple[str, str], ...]


class RowQueries:
    """Runs queries and procedures on one connection, which is opened when it is first needed."""

    def __init__(self, conninfo: str, program: str, report: Callable[[str], None]) -> None:
        self._conninfo = conninfo
        self._program = program
        self._connection: psycopg.Connection[Any] | None = None
        self._routines: dict[str, _Routine] = {}
        self._texts: dict[str, str] = {}
        self.report = report
        self.apply_pending: Callable[[], None] = lambda: None

    def query(self, text: str, values: Mapping[str, Value]) -> Result | None:
        """Run a query and return its first row."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = _with_marks(text, list(values))
        return self._run(found, values)

    def procedure(self, name: str, values: Mapping[str, Value]) -> Result | None:
        """Run a procedure or function and return its result."""
        routine = self._routines.get(name)
        if routine is None:
            routine = self._routines[name] = self._find(name)
        known = {argument.lower(): argument for argument, _ in routine.arguments}
        unknown = [given for given in values if given.lower() not in known]
        if unknown:
            raise DatabaseError(f"{name} has no parameter {', '.join(unknown)}", hint="correct PARAMS")
        named = {known[given.lower()]: value for given, value in values.items()}
        parts = [f"{quote(argument)} => {_mark(argument)}" for argument in named]
        if routine.called:
            parts += [f"{quote(argument)} => NULL" for argument, mode in routine.arguments if mode == "o"]
            return self._run(f"CALL {routine.text}({', '.join(parts)})", named)
        found = self._run(f"SELECT * FROM {routine.text}({', '.join(parts)})", named)
        if found and not any(mode in "obt" for _, mode in routine.arguments):
            return {"return_value": next(iter(found.values()))}
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _find(self, name: str) -> _Routine:
        *owner, last = split_name(name)
        schema = owner[-1] if owner else ""
        rows = session.execute(self._open(), _FIND, [last, schema, schema])
        if not rows:
            raise DatabaseError(f"procedure or function {name} does not exist", hint="correct SPNAME")
        namespace, kind, names, modes = rows[0]
        arguments = tuple(zip(names, modes or ["i"] * len(names), strict=False))
        return _Routine(quote_table(TableName(namespace, last)), kind == "p", arguments)

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = session.connect(self._conninfo, program=self._program)
            # Nothing is prepared: the types of the columns may change while the connection is open.
            self._connection.prepare_threshold = None
        return self._connection

    def _run(self, text: str, values: Mapping[str, Value]) -> Result | None:
        import psycopg

        self.apply_pending()
        given = {name: None if isinstance(value, State) else value for name, value in values.items()}
        try:
            cursor = self._open().execute(text, given)
            return _first_row(cursor)
        except psycopg.Error as error:
            found = session.translate(error)
            if isinstance(found, ConnectionLostError):
                self.close()
            raise found from error


def _first_row(cursor: psycopg.Cursor[Any]) -> Result | None:
    """The first row in the server's text form, by column name in lower case."""
    result = cursor.pgresult
    if result is None or cursor.description is None or not result.ntuples:
        return None
    found: dict[str, Value] = {}
    for place, column in enumerate(cursor.description):
        raw = result.get_value(0, place)
        found[column.name.lower()] = State.NULL if raw is None else raw.decode()
    return found


def _mark(name: str) -> str:
    return f"%({name})s"


def _with_marks(text: str, names: list[str]) -> str:
    """Convert ``:name`` and ``?`` to the driver's parameters, but not in quotes and not the ``::`` of a cast."""
    rest = iter(names)
    by_lower = {name.lower(): name for name in names}

    def mark(match: re.Match[str]) -> str:
        if match[1]:
            return match[1].replace("%", "%%")
        if match[4]:
            return "%%"
        name = by_lower.get(match[2].lower()) if match[2] else next(rest, None)
        if name is None:
            raise DatabaseError(
                f"PARAMS has no value for {match[0]}", hint="specify every parameter of QUERY in PARAMS"
            )
        return _mark(name)

    return _PARAMETER.sub(mark, text)
