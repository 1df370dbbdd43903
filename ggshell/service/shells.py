"""The shells of connected clients: one session of statements for each signed-in session.

A shell keeps its database login from one statement to the next. It ends when the signed-in session ends: at sign-out, after
the time limit without requests, or when the user's password or role changes. A statement has no time limit, but it ends when
its client goes away.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.clock import Clock
from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.home.last_part import MOST_BYTES
from ggshell.service.background import Background, Report
from ggshell.time_limit import TimeLimit

LONGEST_CHECK_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 1.0


class ShellSettings(NamedTuple):
    """What a client chose for its shell: the query engine, and whether START also starts Manager."""

    engine: str = ""
    auto_manager: bool = False


class _Shell:
    __slots__ = ("ended", "lock", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lock = threading.Lock()
        self.ended = False


class Shells:
    """The shells of a service, by the token of the signed-in session. Any thread can use them.

    ``is_live``: whether a token is still valid; ``seconds``: how long a session lasts without requests; ``report``: for what
    keeps ended shells from being closed.
    """

    def __init__(
        self, home: Home, clock: Clock, is_live: Callable[[str], bool], seconds: float, report: Report
    ) -> None:
        self._home = home
        self._clock = clock
        self._is_live = is_live
        self._pause = max(0.2, min(LONGEST_CHECK_SECONDS, seconds / 2))
        self._shells: dict[str, _Shell] = {}
        self._guard = threading.Lock()
        self._checks = Background("shells", self.check, report, retry=self._pause)
        self._is_checking = self._closed = False

    @property
    def number(self) -> int:
        """How many shells are open."""
        with self._guard:
            return len(self._shells)

    def has(self, token: str) -> bool:
        """Whether a token is that of a shell's session."""
        return token in self._shells

    def open(self, token: str, settings: ShellSettings) -> None:
        """Open the shell of a signed-in session."""
        self._of(token, settings)

    @contextmanager
    def use(self, token: str) -> Iterator[Session]:
        """Return the session of a token for one statement; without a token, a session for this statement only.

        Raises HttpError 409 while another statement of the same session runs.
        """
        if not token:
            session = self._new(ShellSettings())
            try:
                yield session
            finally:
                session.close()
            return
        shell = self._of(token, ShellSettings())
        if not shell.lock.acquire(timeout=_PATIENCE_SECONDS):
            raise HttpError(
                409,
                "another statement of this session is still being carried out",
                code="GGS-00930",
                hint="wait until it ends, or CONNECT again for a second session",
            )
        try:
            if shell.session.limit is not None:
                shell.session.limit.begin()
            yield shell.session
        finally:
            shell.lock.release()
            if shell.ended:
                _end(shell)

    def close(self, token: str) -> None:
        """End the shell of a token, if there is one; a statement that it carries out is completed."""
        with self._guard:
            shell = self._shells.pop(token, None)
        if shell is not None:
            _end(shell)

    def close_all(self) -> None:
        """End every shell; none can be opened afterwards."""
        with self._guard:
            self._closed = True
            shells, self._shells = list(self._shells.values()), {}
        self._checks.close()
        for shell in shells:
            _end(shell)

    def check(self) -> float | None:
        """End the shells whose signed-in session has ended; return when to check again, None if there are no shells."""
        with self._guard:
            tokens = list(self._shells)
        for token in tokens:
            if not self._is_live(token):
                self.close(token)
        return self._pause if self.number else None

    def _of(self, token: str, settings: ShellSettings) -> _Shell:
        with self._guard:
            shell = self._shells.get(token)
            if shell is None:
                shell = self._shells[token] = _Shell(self._new(settings))
                self._check_soon()
            return shell

    def _new(self, settings: ShellSettings) -> Session:
        options = Options(
            home=str(self._home.root), engine=settings.engine, shell=False, auto_manager=settings.auto_manager
        )
        session = Session(options, clock=self._clock)
        session.longest_text = MOST_BYTES
        session.limit = TimeLimit(self._clock)
        session.wait = session.limit.pause
        return session

    def _check_soon(self) -> None:
        """Let the thread check, which waits while there are no shells. The caller holds the guard."""
        if not self._is_checking and not self._closed:
            self._is_checking = True
            self._checks.start()
        self._checks.wake()


def _end(shell: _Shell) -> None:
    """Close a shell's session now, or at the end of the statement that it carries out."""
    shell.ended = True
    if shell.lock.acquire(blocking=False):
        try:
            shell.session.close()
        finally:
            shell.lock.release()
