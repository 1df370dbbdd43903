"""The DDL statements of a binary log as records of a trail, and the mark of those that a Replicat executed."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import Final, NamedTuple

from ggshell.connectors.ddl_choice import DdlChoice
from ggshell.connectors.mysql.binlog.events import Query
from ggshell.connectors.mysql.binlog.query_variables import NO_FOREIGN_KEY_CHECKS
from ggshell.connectors.mysql.ddl_text import DdlText, ddl_text, without
from ggshell.record.ddl import DdlStatement

KIND: Final = "mysql"
"""The language of the statements (``DdlStatement.database``)."""
OWN_OFFSET: Final = 26471
"""``auto_increment_offset`` of a session in which a Replicat executes DDL. The server ignores an offset that is larger than the
increment, and logs it with each statement; comments, by contrast, are lost where the server writes the text itself."""
DATABASE, SQL_MODE, FOREIGN_KEYS = "database", "sql_mode", "foreign_key_checks"
TIME, TIME_ZONE, EXPLICIT = "timestamp", "time_zone", "explicit_defaults_for_timestamp"
"""The settings of a statement. TIME: when it began, in seconds since 1970."""


class DdlCapture(NamedTuple):
    """Reads the DDL of a log. ``replicates``: the statements of a Replicat are captured too."""

    choice: DdlChoice
    replicates: bool = False

    def statement(self, query: Query) -> DdlStatement | None:
        """Return a statement of the log; None if it is not captured."""
        said = query.variables
        if said.offset == OWN_OFFSET and not self.replicates:
            return None
        found = ddl_text(query.text, query.database, said.sql_mode)
        if found is None:
            return None
        settings = (
            (DATABASE, query.database),
            (SQL_MODE, str(said.sql_mode)),
            (FOREIGN_KEYS, "0" if said.flags & NO_FOREIGN_KEY_CHECKS else "1"),
            (TIME, f"{query.time}.{said.microseconds:06d}"),
            *(((TIME_ZONE, said.time_zone),) if said.time_zone else ()),
            (EXPLICIT, str(int(said.explicit_defaults))),
        )
        statement = DdlStatement(found.tag, query.text, found.objects, KIND, settings)
        return self._of_captured(statement, found)

    def _of_captured(self, statement: DdlStatement, found: DdlText) -> DdlStatement | None:
        """The statement for those of its objects that are captured: DROP and RENAME TABLE can name several."""
        taken = [self.choice.takes(replace(statement, objects=(each,))) for each in statement.objects]
        if any(taken) and not all(taken):
            objects = tuple(compress(statement.objects, taken))
            statement = replace(statement, text=without(statement.text, found, taken), objects=objects)
        return self.choice(statement)
