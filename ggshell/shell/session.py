"""A session: the home, the login, the settings, the history."""

from __future__ import annotations

from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import StateError
from ggshell.store.events import EventLog
from ggshell.store.home import Home

PROGRAM = "ggshell Command Interpreter for PostgreSQL"
OBEY_DEPTH = 16


class Session:
    """What commands work with; one a shell."""

    def __init__(self, home: Home, *, clock: Clock | None = None) -> None:
        self.home = home
        self.clock = clock or SystemClock()
        self.events = EventLog(home, self.clock)
        self.conninfo = ""
        self.database = ""
        self.user = ""
        self.history: list[str] = []
        self.allow_nested = False
        self.allow_shell = True
        self.auto_manager = False
        self.obey_depth = 0
        self.leaving = False

    def require_login(self) -> str:
        """The connection string of the login.  Raises StateError without one."""
        if not self.conninfo:
            raise StateError(
                "Not logged into database, use DBLOGIN.", code="GGS-00204", hint="DBLOGIN USERIDALIAS alias"
            )
        return self.conninfo

    def connect(self) -> Any:
        """A connection to the database that DBLOGIN named."""
        from ggshell.databases.postgres.session import connect

        return connect(self.require_login(), program="ggshell")
