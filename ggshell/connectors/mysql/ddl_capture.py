"""The DDL statements of a binary log as records of a trail, and the mark of those that a Replicat executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog.events import Query
from ggshell.connectors.mysql.binlog.query_variables import NO_FOREIGN_KEY_CHECKS
from ggshell.connectors.mysql.ddl_text import ddl_text
from ggshell.record.ddl import DdlStatement

KIND: Final = "mysql"
"""The language of the statements (``DdlStatement.database``)."""
OWN_OFFSET: Final = 26471
"""``auto_increment_offset`` of a session in which a Replicat executes DDL. The server ignores an offset that is larger than the
increment, and logs it with each statement; comments, by contrast, are lost where the server writes the text itself."""
DATABASE, SQL_MODE, FOREIGN_KEYS = "database", "sql_mode", "foreign_key_checks"
"""The settings of a statement."""


class DdlCapture(NamedTuple):
    """Reads the DDL of a log. ``choose``: returns a statement as it is captured, None if it is not captured;
    ``replicates``: those of a Replicat are captured too."""

    choose: Callable[[DdlStatement], DdlStatement | None]
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
        )
        return self.choose(DdlStatement(found.tag, query.text, found.objects, KIND, settings))
