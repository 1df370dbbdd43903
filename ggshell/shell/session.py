"""The state of one shell: home, login, options, history.  Handlers get it as their first argument."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from ggshell.clock import Clock, SystemClock
from ggshell.errors import DiskError, NotFoundError, StateError
from ggshell.shell.options import Options
from ggshell.shell.redaction import redacted
from ggshell.store.home import Home

if TYPE_CHECKING:
    from ggshell.spark.engines import Engines
    from ggshell.store.events import EventLog, Severity

PROGRAM = "ggshell Command Interpreter for PostgreSQL"
DEEPEST_OBEY = 16


class Login(NamedTuple):
    """Who is logged in where; ``conninfo`` holds the password and is never shown."""

    conninfo: str
    user: str
    database: str
    version: str = ""

    @property
    def redo(self) -> str:
        """The folder of redo (``redo:///folder``) that this is a login to, empty for a database."""
        return self.conninfo if self.conninfo.lower().startswith("redo://") else ""

    @property
    def duckdb(self) -> str:
        """The login to a DuckDB file (``duckdb:///folder/file``) that this is, empty for another database."""
        return self.conninfo if self.conninfo.lower().startswith("duckdb://") else ""

    def __str__(self) -> str:
        return f"{self.user}@{self.database}"

    def __repr__(self) -> str:
        return f"Login({self})"


class Session:
    """One shell's state.

    ``ask``: puts a question to the user and gives the answer, None where nobody can be asked (batch); the second argument
    says whether what is typed must stay hidden.
    ``busy``: shows that a statement works while it does, ``progress`` how far it is.
    ``wait``: pauses for seconds; true when it is to end.
    """

    def __init__(self, options: Options | None = None, *, clock: Clock | None = None) -> None:
        self.options = options or Options()
        self.home = Home(Path(self.options.home))
        self.clock: Clock = clock or SystemClock()
        self.login: Login | None = None
        self.history: list[str] = []
        self.finished = False
        self.allow_nested = False
        self.obey_depth = 0
        self.editor = ""
        self.pager = ""
        self.timing = False
        self.busy: Callable[[str], AbstractContextManager[object]] = lambda _: nullcontext()
        self.progress: Callable[[str], None] = lambda _: None
        self.wait: Callable[[float], bool] = _pause
        self._spool: TextIO | None = None
        self.ask: Callable[[str, bool], str] | None = None
        self.interactive = False
        self._connection: Any = None
        self._events: EventLog | None = None
        self._engines: Engines | None = None

    @property
    def events(self) -> EventLog:
        """The error log of the home, which is made when it lacks."""
        if self._events is None:
            from ggshell.store.events import EventLog

            self.home.ensure()
            self._events = EventLog(self.home, self.clock)
        return self._events

    @property
    def engines(self) -> Engines:
        """Who answers questions about trails and lag; kept warm as long as this shell.  Raises ParameterError."""
        if self._engines is None:
            from ggshell.spark.engines import Engines
            from ggshell.spark.server import settings_in_use, spark_log

            settings = settings_in_use(self.home, self.options.engine)
            log = spark_log(self.home)
            self._engines = Engines(settings, log, warm_early=self.interactive, clock=self.clock, told=self.progress)
        return self._engines

    def forget_engines(self) -> None:
        """End them; the next question finds what there is then."""
        engines, self._engines = self._engines, None
        if engines is not None:
            engines.close()

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write into ggserr.log as this program."""
        self.events.write(severity, code, PROGRAM, text)

    def remember(self, text: str) -> None:
        """Add a statement to the history, without its secrets."""
        self.history.append(redacted(text))

    @property
    def color(self) -> bool:
        """Whether answers may be coloured: a person at a terminal, and nobody against it."""
        return self.interactive and self.options.color

    @property
    def spool_name(self) -> str:
        """The file that is spooled to, empty for none."""
        return "" if self._spool is None else str(self._spool.name)

    def start_spooling(self, path: Path) -> None:
        """Append what is shown to a file from now on.  Raises DiskError."""
        self.stop_spooling()
        try:
            self._spool = path.open("a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise DiskError(f"cannot write {path}: {error.strerror}", hint="SPOOL another file") from error

    def stop_spooling(self) -> str:
        """End it; the file's name, empty when nothing was spooled."""
        spool, self._spool = self._spool, None
        if spool is None:
            return ""
        spool.close()
        return str(spool.name)

    def spooled(self, text: str) -> None:
        """Keep what was shown, without escape sequences; a full disk ends the spooling and not the shell."""
        if self._spool is None:
            return
        try:
            self._spool.write(without_colors(text))
            self._spool.flush()
        except OSError as error:
            name = self.stop_spooling()
            sys.stderr.write(f"ERROR: spooling to {name} ended: {error.strerror}\n")

    def log_in(self, login: Login, connection: Any) -> None:
        """Take over a connection that DBLOGIN has opened."""
        self.log_out()
        self.login, self._connection = login, connection

    def log_out(self) -> None:
        connection, self._connection, self.login = self._connection, None, None
        if connection is not None:
            connection.close()

    def connection(self) -> Any:
        """The connection of DBLOGIN, opened again when it was lost.  Raises StateError without a login."""
        if self.login is None:
            raise StateError("Not logged into database, use DBLOGIN.", code="GGS-00204")
        if self.login.redo:
            raise StateError(
                f"{self.login.redo} is a log that can be read, and no database that could be asked.",
                hint="DBLOGIN to the target, or to the source itself",
            )
        if self.login.duckdb:
            raise StateError(
                f"{self.login.database} is a DuckDB file, a target of Replicats: this command is for PostgreSQL.",
                hint="DBLOGIN to the source; CHECKPOINTTABLE commands, ALTER and DELETE REPLICAT work with the file",
            )
        if self._connection is None or self._connection.closed:
            from ggshell.databases.postgres.session import connect

            self._connection = connect(self.login.conninfo)
        return self._connection

    def confirm(self, question: str, without: str = "put ! behind the command") -> None:
        """Ask before something that cannot be undone.  Raises StateError unless the answer is yes; ``without``: what does it
        unasked."""
        if self.ask is None:
            raise StateError(f"not done without an answer to: {question}", hint=without)
        if self.ask(f"{question} (y/n)? ", False).strip().lower() not in ("y", "yes"):
            raise StateError("not done.")

    def secret(self, what: str) -> str:
        """A password that the statement left out.  Raises StateError where nobody can be asked."""
        if self.ask is None or not self.interactive:
            raise StateError(f"no password for {what}", hint="PASSWORD …, or an alias of the credential store")
        return self.ask("Password: ", True)

    def close(self) -> None:
        self.stop_spooling()
        self.forget_engines()
        self.log_out()


def _pause(seconds: float) -> bool:
    """Wait; Ctrl-C ends it."""
    import threading

    return threading.Event().wait(seconds)


def without_colors(text: str) -> str:
    """Text as it is without a terminal's escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text) if "\x1b" in text else text


def file_text(path: Path, what: str) -> str:
    """A file's text.  Raises NotFoundError naming it."""
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise NotFoundError(f"cannot read {what} {path}: {error.strerror}") from error
