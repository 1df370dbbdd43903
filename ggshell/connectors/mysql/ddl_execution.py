"""Executes DDL statements in MariaDB or MySQL: with the database and the settings of their sessions in the source.

The server commits at each of them, so a statement is never in one transaction with the checkpoint row. The first one after
a start may have been executed before: if the server then says that what it does is already done, it counts as executed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.ddl_capture import DATABASE, FOREIGN_KEYS, KIND, OWN_OFFSET, SQL_MODE
from ggshell.connectors.mysql.ddl_text import ddl_text, renamed
from ggshell.connectors.mysql.refusals import number_of, refusal
from ggshell.connectors.mysql.session import quote_name
from ggshell.pipeline.apply.target import DDL_REPORT, Noted, Refusal, TargetNames
from ggshell.record.ddl import DdlStatement

if TYPE_CHECKING:
    from pymysql.connections import Connection

NOT_SUPPORTED: Final = "0A000"
_LEFT_OUT: Final = {
    "TRIGGER": "the server would also fire it for replicated rows, which have its effects already",
    "EVENT": "it would run in both databases, and its changes are replicated",
}
"""Objects that are not created in a target, with the reason."""
_DONE: Final = {
    "CREATE": frozenset({1007, 1022, 1050, 1061, 1304, 1359, 1537, 4165}),
    "ALTER": frozenset({1050, 1054, 1060, 1061, 1068, 1091, 1146, 1826, 4127}),
    "DROP": frozenset({1008, 1051, 1091, 1146, 1305, 1360, 1539, 4091, 4092}),
}
"""The server's numbers by the first word of a command, which say that an object is already there, or already gone."""


class DdlExecution:
    """Executes statements over the connection of a target; everything sent must be answered and committed before."""

    def __init__(self, connection: Connection[Any], forget: Callable[[], None]) -> None:
        """``forget``: called after a statement, because tables may be others now."""
        self._connection = connection
        self._forget = forget

    def run(self, statement: DdlStatement, names: TargetNames, noted: Noted, *, again: bool) -> Refusal | None:
        """Execute a statement. ``again``: it may have been executed before. Raises ConnectionLostError."""
        import pymysql

        left_out = _LEFT_OUT.get(statement.main.kind)
        if left_out is not None:
            noted(DDL_REPORT, f"{statement.tag} of {statement.main.name} is left out: {left_out}.")
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
            self._enter(place, {**settings, "auto_increment_offset": str(OWN_OFFSET)})
            self._execute(text)
        except pymysql.Error as error:
            if not (again and number_of(error) in _DONE.get(statement.operation, ())):
                return refusal(error)
            noted(DDL_REPORT, f"{statement.tag} of {statement.main.name} was executed before: {error.args[-1]}")
        finally:
            self._leave(before)
            self._forget()
        return None

    def _settings(self) -> tuple[Any, ...]:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT DATABASE(), @@sql_mode, @@foreign_key_checks, @@auto_increment_offset")
            return tuple(cursor.fetchone() or ())

    def _enter(self, database: str, settings: dict[str, str]) -> None:
        if database:
            self._execute(f"USE {quote_name(database)}")
        mode, keys = int(settings.get(SQL_MODE, "0")), int(settings.get(FOREIGN_KEYS, "1"))
        offset = int(settings["auto_increment_offset"])
        self._execute(f"SET SESSION sql_mode = {mode}, foreign_key_checks = {keys}, auto_increment_offset = {offset}")

    def _leave(self, before: tuple[Any, ...]) -> None:
        """Restore the settings of the session. Raises ConnectionLostError."""
        import pymysql

        database, mode, keys, offset = before
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(
                    "SET SESSION sql_mode = %s, foreign_key_checks = %s, auto_increment_offset = %s",
                    (mode, keys, offset),
                )
            if database:
                self._execute(f"USE {quote_name(database)}")
        except pymysql.Error as error:
            refusal(error)  # raises if the connection is lost

    def _execute(self, text: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(text)
