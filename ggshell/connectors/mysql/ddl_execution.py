"""Executes DDL statements in MariaDB or MySQL: with the database and the settings of their sessions in the source.

The server commits at each of them, so a statement is never in one transaction with the checkpoint row. The first one after
a start may have been executed before: if the server then says that what it does is already done, it counts as executed. Of
statements that could be executed twice, the state of their tables shows it (``ddl_state``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.ddl_capture import (
    DATABASE,
    EXPLICIT,
    FOREIGN_KEYS,
    KIND,
    OWN_OFFSET,
    SQL_MODE,
    TIME,
    TIME_ZONE,
)
from ggshell.connectors.mysql.ddl_state import state_of
from ggshell.connectors.mysql.ddl_text import ddl_text, renamed, target_tables
from ggshell.connectors.mysql.refusals import number_of, refusal
from ggshell.connectors.mysql.session import quote_name
from ggshell.pipeline.apply.target import DDL_REPORT, Noted, Refusal, TargetNames
from ggshell.record.ddl import DdlStatement

if TYPE_CHECKING:
    from pymysql.connections import Connection

NOT_SUPPORTED: Final = "0A000"
_LEFT_OUT: Final = {
    "TRIGGER": "the server would also fire it for replicated rows, which already have its effects",
    "EVENT": "it would run in both databases, and its changes are replicated",
}
"""Objects that are not created in a target, with the reason."""
_DONE: Final = {
    "CREATE": frozenset({1007, 1022, 1050, 1061, 1304, 1359, 1537, 4165}),
    "ALTER": frozenset({1050, 1054, 1060, 1061, 1068, 1091, 1146, 1826, 4127}),
    "DROP": frozenset({1008, 1051, 1091, 1146, 1305, 1360, 1539, 4091, 4092}),
}
"""The server's numbers by the first word of a command, which say that an object is already there, or already gone."""


_OFFSET: Final = "auto_increment_offset"
_SETTINGS: Final = (SQL_MODE, FOREIGN_KEYS, _OFFSET, TIME_ZONE, EXPLICIT)
"""The settings of a session that are changed for a statement, besides the time."""


class _Session(NamedTuple):
    """The database of a session, and the values of _SETTINGS."""

    database: str
    values: Mapping[str, Any]


class DdlExecution:
    """Executes statements over the connection of a target; everything sent must be answered and committed before."""

    def __init__(self, connection: Connection[Any], forget: Callable[[], None]) -> None:
        """``forget``: called after a statement, because tables may be others now."""
        self._connection = connection
        self._forget = forget

    def state(self, statement: DdlStatement, names: TargetNames) -> str:
        """The state of the tables of a statement (``ddl_state``). Raises ConnectionLostError."""
        settings = dict(statement.settings)
        found = ddl_text(statement.text, settings.get(DATABASE, ""), int(settings.get(SQL_MODE, "0")))
        return state_of(self._connection, target_tables(found, names) if found is not None else [])

    def run(self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool) -> Refusal | None:
        """Execute a statement. ``again``: it may have been executed before. Raises ConnectionLostError."""
        import pymysql

        left_out = _LEFT_OUT.get(statement.main.kind)
        if left_out is not None:
            noted(DDL_REPORT, f"{statement.tag} of {statement.main.name} is skipped: {left_out}.")
            return None
        settings = dict(statement.settings)
        mode, database = int(settings.get(SQL_MODE, "0")), settings.get(DATABASE, "")
        if statement.database != KIND:
            kind = statement.database or "another database"
            return Refusal(f"it is a statement of {kind}, not of MariaDB (SQLSTATE {NOT_SUPPORTED})", NOT_SUPPORTED)
        found = ddl_text(statement.text, database, mode)
        text = statement.text if found is None else renamed(statement.text, found, names, mode)
        before = self._settings()
        try:
            place = "" if statement.main.kind == "DATABASE" else names.session_schema(database)
            self._enter(place, settings, before)
            self._execute(text)
        except pymysql.Error as error:
            if not (again and number_of(error) in _DONE.get(statement.operation, ())):
                return refusal(error)
            noted(DDL_REPORT, f"{statement.tag} of {statement.main.name} was executed before: {error.args[-1]}")
        finally:
            self._leave(before)
            self._forget()
        return None

    def _settings(self) -> _Session:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT DATABASE(), {', '.join(f'@@{name}' for name in _SETTINGS)}")
            (found,) = cursor.fetchall()
        return _Session(found[0] or "", dict(zip(_SETTINGS, found[1:], strict=True)))

    def _enter(self, database: str, settings: Mapping[str, str], before: _Session) -> None:
        """Take over the settings of the statement. A server may refuse to change one, so equal ones are not set."""
        if database:
            self._execute(f"USE {quote_name(database)}")
        wanted: dict[str, Any] = {
            SQL_MODE: int(settings.get(SQL_MODE, "0")),
            FOREIGN_KEYS: int(settings.get(FOREIGN_KEYS, "1")),
            _OFFSET: OWN_OFFSET,
            TIME_ZONE: settings.get(TIME_ZONE, before.values[TIME_ZONE]),
            EXPLICIT: int(settings.get(EXPLICIT, before.values[EXPLICIT])),
        }
        self._set({name: value for name, value in wanted.items() if value != before.values[name]})
        if TIME in settings:
            self._set({TIME: Decimal(settings[TIME])})

    def _leave(self, before: _Session) -> None:
        """Restore the settings of the session. Raises ConnectionLostError."""
        import pymysql

        try:
            now = self._settings()
            self._set({name: value for name, value in before.values.items() if value != now.values[name]})
            self._execute("SET SESSION timestamp = DEFAULT")
            if before.database:
                self._execute(f"USE {quote_name(before.database)}")
        except pymysql.Error as error:
            refusal(error)  # raises if the connection is lost

    def _set(self, values: Mapping[str, Any]) -> None:
        if values:
            self._execute(f"SET SESSION {', '.join(f'{name} = %s' for name in values)}", tuple(values.values()))

    def _execute(self, text: str, values: Sequence[Any] | None = None) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(text, values)
