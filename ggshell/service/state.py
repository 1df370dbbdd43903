"""The state of a running service that its requests share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import HttpError
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home
from ggshell.home.users import Users
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.refused_sign_ins import RefusedSignIns
from ggshell.service.scheduler import TaskScheduler
from ggshell.service.shells import Shells
from ggshell.service.sign_in import SignIn

if TYPE_CHECKING:
    from ggshell.service.metrics import HomeCollector

PROGRAM: Final = "Service"
WORKERS: Final = 16
MOST_LOGINS: Final = 8
"""How many requests may use databases at the same time. A database that does not answer must leave workers to the others."""
_MOST_LONG_REQUESTS: Final = 200


class LongRequest(NamedTuple):
    """A request that takes longer than its deadline and is followed with ``requests/{name}``."""

    name: str
    user: str
    method: str
    path: str
    started: int
    future: Future[Answer | RawAnswer]

    @property
    def status(self) -> str:
        if not self.future.done():
            return "inProgress"
        return "failed" if self.future.exception() is not None else "completed"


class _Lock:
    """A lock of an object. ``users``: how many requests hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


class ServiceState:
    """What the requests of a service share. Any thread can use it.

    ``workers`` carry out reads. Changes wait for each other and statements of shells may take long, so they have threads of
    their own: ``change_workers`` and ``statement_workers``.
    """

    def __init__(self, home: Home, settings: ServiceParameters, clock: Clock) -> None:
        self.home = home
        self.settings = settings
        self.clock = clock
        self.started = clock.now()
        self.users = Users(home)
        self.sign_in = SignIn(self.users, clock, settings.session_seconds)
        self.shells = Shells(home, clock, self.sign_in.is_live, settings.session_seconds)
        self.refused_sign_ins = RefusedSignIns(clock)
        self.password_worker = ThreadPoolExecutor(1, thread_name_prefix="sign-in")
        self.workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="request")
        self.change_workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="change")
        self.statement_workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="statement")
        self.tasks = TaskScheduler(home, clock)
        self.long_requests: OrderedDict[str, LongRequest] = OrderedDict()
        self._events = EventLog(home, clock)
        self._locks: dict[str, _Lock] = {}
        self._guard = threading.Lock()
        self._number = 0
        self._logins = threading.BoundedSemaphore(MOST_LOGINS)

    @cached_property
    def collector(self) -> HomeCollector:
        """The collector of the home's metrics; its library is loaded at the first use."""
        from ggshell.service.metrics import HomeCollector

        return HomeCollector(self.home, self.clock)

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to ggserr.log. Raises DiskError."""
        self._events.write(severity, code, PROGRAM, text)

    @contextmanager
    def exclusive(self, name: str, seconds: float) -> Iterator[None]:
        """Let one request at a time change an object; an empty name stands for nothing.

        Raises HttpError 409 if it is still being changed after the time.
        """
        if not name:
            yield
            return
        with self._guard:
            found = self._locks.setdefault(name, _Lock())
            found.users += 1
        try:
            if not found.lock.acquire(timeout=seconds):
                raise HttpError(409, f"another request is changing {name}", hint="repeat the request later")
            try:
                yield
            finally:
                found.lock.release()
        finally:
            with self._guard:
                found.users -= 1
                if not found.users:
                    del self._locks[name]

    @contextmanager
    def database(self) -> Iterator[None]:
        """Hold one of the places of requests that use a database. Raises HttpError 503 immediately if none is free."""
        if not self._logins.acquire(blocking=False):
            raise HttpError(
                503,
                f"{MOST_LOGINS} requests already wait for databases",
                hint="repeat the request when they have ended",
            )
        try:
            yield
        finally:
            self._logins.release()

    def follow(self, user: str, method: str, path: str, future: Future[Answer | RawAnswer]) -> LongRequest:
        """Keep a request whose result the client will ask for later."""
        with self._guard:
            self._number += 1
            found = LongRequest(str(self._number), user, method, path, self.clock.now(), future)
            self.long_requests[found.name] = found
            for name in [each for each, old in self.long_requests.items() if old.future.done()]:
                if len(self.long_requests) <= _MOST_LONG_REQUESTS:
                    break
                del self.long_requests[name]
        return found

    def close(self) -> None:
        self.tasks.close()
        self.shells.close_all()
        for workers in (self.password_worker, self.workers, self.change_workers, self.statement_workers):
            workers.shutdown(wait=False, cancel_futures=True)
