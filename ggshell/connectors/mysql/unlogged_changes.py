"""What the rows of a log do not show: it is reported, because a target can then have other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.binlog.cascades import is_unchecked
from ggshell.connectors.mysql.binlog.events import Query
from ggshell.connectors.mysql.binlog.row_events import has_all_columns, operation_of
from ggshell.connectors.mysql.ddl_capture import OWN_OFFSET
from ggshell.connectors.mysql.ddl_text import ddl_text, makes_versions, removes_rows
from ggshell.connectors.mysql.requirements import versioned
from ggshell.connectors.mysql.session import execute, variables
from ggshell.record.operation import IoType
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

CASCADES: Final = "GGS-00486"
_UNCHECKED, _INCOMPLETE, _PARTITION = "GGS-00487", "GGS-00488", "GGS-00489"
_BY_ENGINE: Final = "innodb_native_foreign_keys"
"""Whether InnoDB enforces foreign keys. Servers without this setting do it there."""
_SHOWN: Final = 5
"""How many tables a message names."""


class UnloggedChanges:
    """Checks the row events of captured tables, and DDL that is not captured. Reports each table once.

    ``report``: receives the code and the text of a warning.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._reported: set[tuple[str, TableName]] = set()

    def look(self, event: bytes, table: TableName) -> None:
        inserts = operation_of(event) is IoType.INSERT
        if not inserts and is_unchecked(event):
            self._report_once(
                _UNCHECKED,
                table,
                f"A session with foreign_key_checks = 0 has changed or deleted rows of {table}: foreign keys of the target"
                " with CASCADE or SET NULL act on these rows, although those of the source did not.",
            )
        if inserts and not has_all_columns(event):
            self._report_once(
                _INCOMPLETE,
                table,
                f"The log lacks columns of rows that were inserted into {table}: the session has set binlog_row_image to"
                " MINIMAL or NOBLOB. The target uses its own defaults for them.",
            )

    def executed(self, query: Query, wanted: Callable[[TableName], bool], *, captured: bool) -> None:
        """Report a statement that removes or replaces rows of captured tables without logging them, unless it is ``captured``.

        Raises CaptureError if it makes such a table system-versioned.
        """
        said = query.variables
        found = ddl_text(query.text, query.database, said.sql_mode)
        if found is None or query.error:
            return
        names = [name for name in dict.fromkeys(place.name for place in found.places) if wanted(name)]
        if names and makes_versions(query.text, found, said.sql_mode):
            raise versioned(names[0])
        words = removes_rows(query.text, found, said.sql_mode) if not captured and said.offset != OWN_OFFSET else ""
        if names and words:
            tables = " and ".join(map(str, names))
            self._report(
                _PARTITION,
                f"ALTER TABLE … {words} has changed rows of {tables}: they are not in the log, and the targets keep theirs.",
            )

    def _report_once(self, code: str, table: TableName, text: str) -> None:
        if (code, table) not in self._reported:
            self._reported.add((code, table))
            self._report(code, text)


def cascading_tables(connection: Connection[Any], wanted: Callable[[TableName], bool]) -> list[TableName]:
    """The captured tables whose rows a foreign key changes or deletes, which InnoDB does not log."""
    if variables(connection, _BY_ENGINE).get(_BY_ENGINE) == "OFF":
        return []
    rows = execute(
        connection,
        "SELECT DISTINCT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
        " WHERE DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL') ORDER BY 1, 2",
    )
    return [name for name in (TableName(*row) for row in rows) if wanted(name)]


def cascades_text(tables: list[TableName]) -> str:
    """What to know about the tables of ``cascading_tables``."""
    shown = ", ".join(map(str, tables[:_SHOWN])) + (f" and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else "")
    return (
        f"Foreign keys of {shown} change or delete rows by CASCADE or SET NULL, which the server does not log: the targets"
        " need the same foreign keys."
    )
