"""The state of one shell: home, login, options and history. Handlers receive it as their first argument."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ggshell.cli.options import Options
from ggshell.clock import Clock, SystemClock, pause
from ggshell.errors import DiskError, NotFoundError, StateError, StoreError, UsageError
from ggshell.files import disk_errors
from ggshell.home.home import Home
from ggshell.home.last_part import part_of

if TYPE_CHECKING:
    from ggshell.client.remote import Remote
    from ggshell.connectors.logged_in import LoggedIn
    from ggshell.home.events import EventLog, Severity
    from ggshell.query.engines import Engines
    from ggshell.time_limit import TimeLimit

PROGRAM = "ggshell Command Interpreter for PostgreSQL"
DEEPEST_OBEY = 16


class Session:
    """The state of one shell.

    ``actor``: who issues the statements, for ggserr.log; empty for the user of the operating system. ``ask``: asks the
    user a question and returns the answer; None if it cannot prompt (batch). Its second argument is whether the input
    must be hidden. ``busy``: shows that a statement is being carried out; ``progress`` shows how far it is.
    ``keeps_journal``: statements belong to a request to the service, which keeps the journal of its steps.
    ``longest_text``: how many bytes of a report or a log a statement returns, which the service keeps in memory; None
    for all. ``wait``: pauses for a number of seconds and returns true if the caller is to stop. ``limit``: how long
    databases may take; None for as long as the user waits. ``remote``: the connection to another home, None without
    one. ``wants_connection``: CONNECT was carried out, even if it failed; statements that were meant for another home
    must not change this one.
    """

    def __init__(self, options: Options | None = None, *, clock: Clock | None = None) -> None:
        self.options = options or Options()
        self.home = Home(Path(self.options.home))
        self.clock: Clock = clock or SystemClock()
        self.actor = ""
        self.login: LoggedIn | None = None
        self.history: list[str] = []
        self.finished = False
        self.allow_nested = False
        self.obey_depth = 0
        self.editor = ""
        self.pager = ""
        self.timing = self.options.timing
        self.busy: Callable[[str], AbstractContextManager[object]] = lambda _: nullcontext()
        self.progress: Callable[[str], None] = lambda _: None
        self.wait: Callable[[float], bool] = pause
        self.limit: TimeLimit | None = None
        self._spool: TextIO | None = None
        self.ask: Callable[[str, bool], str] | None = None
        self.interactive = False
        self.keeps_journal = False
        self.longest_text: int | None = None
        self.remote: Remote | None = None
        self.wants_connection = False
        self._events: EventLog | None = None
        self._engines: Engines | None = None

    @property
    def is_client(self) -> bool:
        """Whether statements go to another home: after CONNECT, and always in the Admin Client."""
        return self.wants_connection or self.options.admin_client

    def leave_home(self) -> None:
        """Statements from now on are meant for another home, whether or not the connection to it succeeds."""
        self.disconnect()
        self.wants_connection = True

    def disconnect(self) -> None:
        """End the connection to another home, if there is one."""
        remote, self.remote = self.remote, None
        if remote is not None:
            remote.close()

    @property
    def events(self) -> EventLog:
        """The error log of the home. The home is created if it does not exist."""
        if self._events is None:
            from ggshell.home.events import EventLog, Severity
            from ggshell.home.identity import record_location

            self.home.ensure()
            events = EventLog(self.home, self.clock)
            moved = record_location(self.home.root)
            self._events = events
            if moved:
                events.write(Severity.WARNING, "GGS-00806", PROGRAM, moved)
                sys.stderr.write(f"WARNING: GGS-00806  {moved}\n")
        return self._events

    @property
    def engines(self) -> Engines:
        """The engines that answer queries about trails and lag; they stay warm as long as the shell runs.

        Raises ParameterError.
        """
        if self._engines is None:
            from ggshell.query.engines import Engines
            from ggshell.query.server import settings_in_use, spark_log

            settings = settings_in_use(self.home, self.options.engine)
            log = spark_log(self.home)
            self._engines = Engines(
                settings,
                log,
                warm_early=self.interactive,
                clock=self.clock,
                on_progress=self.progress,
                stopped=lambda: self.limit is not None and self.limit.ended,
            )
        return self._engines

    def forget_engines(self) -> None:
        """Close the engines; the next query starts engines with the settings in force then."""
        engines, self._engines = self._engines, None
        if engines is not None:
            engines.close()

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to ggserr.log under this program's name.

        If the log cannot be written, the message goes to standard error, so that a full disk does not prevent, for
        example, stopping a process.
        """
        try:
            self.events.write(severity, code, PROGRAM, text)
        except (DiskError, StoreError) as error:
            sys.stderr.write(f"WARNING: GGS-00804  not logged in ggserr.log: {error}\n")

    def remember(self, text: str) -> None:
        """Add a redacted statement to the history."""
        self.history.append(text)

    @property
    def color(self) -> bool:
        """Whether output may be colored: the shell is interactive and color is not turned off."""
        return self.interactive and self.options.color

    @property
    def spool_name(self) -> str:
        """The name of the spool file; empty if nothing is spooled."""
        return "" if self._spool is None else str(self._spool.name)

    def start_spooling(self, path: Path) -> None:
        """Append everything that is shown from now on to a file. Raises DiskError."""
        self.stop_spooling()
        with disk_errors("write", path, hint="SPOOL another file"):
            self._spool = path.open("a", encoding="utf-8", errors="backslashreplace")

    def stop_spooling(self) -> str:
        """Stop spooling and return the file's name, or an empty string if nothing was spooled."""
        spool, self._spool = self._spool, None
        if spool is None:
            return ""
        spool.close()
        return str(spool.name)

    def spooled(self, text: str) -> None:
        """Write what was shown to the spool file, without escape sequences.

        A full disk ends spooling, not the shell.
        """
        if self._spool is None:
            return
        try:
            self._spool.write(without_colors(text))
            self._spool.flush()
        except OSError as error:
            name = self.stop_spooling()
            sys.stderr.write(f"ERROR: spooling to {name} ended: {error.strerror}\n")

    def log_in(self, login: LoggedIn) -> None:
        """Adopt a login, after closing the previous one."""
        self.log_out()
        self.login = login

    def log_out(self) -> None:
        login, self.login = self.login, None
        if login is not None:
            login.close()

    def logged_in(self) -> LoggedIn:
        """The login of DBLOGIN. Raises StateError if there is none."""
        from ggshell.connectors.logged_in import required

        return required(self.login)

    def confirm(self, question: str, without: str = "put ! after the command") -> None:
        """Ask before something that cannot be undone. Raises StateError unless the answer is yes.

        ``without``: the hint that shows how to run the command without the question.
        """
        if self.ask is None:
            raise StateError(f"a confirmation is required: {question}?", hint=without)
        if self.ask(f"{question} (y/n)? ", False).strip().lower() not in ("y", "yes"):
            raise StateError("not done.")

    def secret(self, what: str, hint: str = "specify it, or an alias of the credential store") -> str:
        """Prompt for a password that the statement omits. Raises StateError if the shell is not interactive."""
        return self._asker(what, hint)("Password: ", True)

    def new_secret(self, what: str, hint: str) -> str:
        """Prompt twice for a password that is set. Raises StateError as ``secret`` does, UsageError if the two differ."""
        ask = self._asker(what, hint)
        first = ask("New password: ", True)
        if ask("Repeat the password: ", True) != first:
            raise UsageError("the two passwords differ", hint="enter the statement again")
        return first

    def _asker(self, what: str, hint: str) -> Callable[[str, bool], str]:
        if self.ask is None or not self.interactive:
            raise StateError(f"a password is required for {what}", hint=hint)
        return self.ask

    def close(self) -> None:
        self.stop_spooling()
        self.disconnect()
        self.forget_engines()
        self.log_out()


def without_colors(text: str) -> str:
    """Remove a terminal's color escape sequences from a text."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text) if "\x1b" in text else text


def file_text(path: Path, what: str, most: int | None = None) -> str:
    """Return a file's text, the end of a longer one than ``most`` bytes.

    Raises NotFoundError with the file's name if it cannot be read.
    """
    try:
        return path.read_text(errors="replace") if most is None else part_of(path, most=most)
    except OSError as error:
        raise NotFoundError(f"cannot read {what} {path}: {error.strerror}") from error
