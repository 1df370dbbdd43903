"""The state of a running service that its requests share."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import GgsError, HttpError
from ggshell.home.certificate import CERTIFICATE, read_certificate
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home
from ggshell.home.users import Users
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.access import AccessControl
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.audit import Audit
from ggshell.service.locks import Locks
from ggshell.service.named_files import Bounds
from ggshell.service.refused_sign_ins import RefusedSignIns
from ggshell.service.scheduler import TaskScheduler
from ggshell.service.shells import Shells
from ggshell.service.sign_in import Principal, SignIn
from ggshell.time_limit import TimeLimit

if TYPE_CHECKING:
    from ggshell.service.metrics import HomeCollector

PROGRAM: Final = "Service"
DATABASE: Final = "HTTP"
_LOGGED_AS: Final = f"ggshell {PROGRAM} for {DATABASE}, service.prm"
"""The name in ggserr.log, the same as in the lines of the service's report."""
WORKERS: Final = 16
MOST_LOGINS: Final = 8
"""How many requests may use databases at the same time. A database that does not answer must leave workers to the others."""
SILENCE_SECONDS: Final = 15.0
"""How long a database may leave a statement of a request without an answer. Less than the deadline of a request."""
ABANDONED_SECONDS: Final = 60.0
"""How long a statement continues after its client has stopped asking for its outcome. A shell asks twice a second."""
_MOST_LONG_REQUESTS: Final = 200


class LongRequest(NamedTuple):
    """A request that takes longer than its deadline and is followed with ``requests/{name}``.

    ``identity``: that of its user, which a user of the same name who is added later does not have.
    """

    name: str
    user: str
    identity: str
    method: str
    path: str
    started: int
    future: Future[Answer | RawAnswer]
    limit: TimeLimit | None = None

    @property
    def status(self) -> Literal["inProgress", "failed", "completed"]:
        if not self.future.done():
            return "inProgress"
        return "failed" if self.future.exception() is not None else "completed"

    def renew(self) -> None:
        """The client asks for the result, so a statement of a shell may continue until it stops asking."""
        if self.limit is not None:
            self.limit.renew(ABANDONED_SECONDS)


class ServiceState:
    """What the requests of a service share. Any thread can use it.

    ``workers`` carry out reads. Changes and statements of shells may take long, so they have threads of their own:
    ``change_workers`` and ``statement_workers``. ``locks``: the objects that requests change. ``silence_seconds``: for how
    long a database may leave a statement of a request without an answer. ``free_logins``, ``free_statements``: how many more
    requests may use databases, and how many more statements of shells may be carried out. ``undo_again``: set if a journal
    remains that is to be undone. ``metrics_changed``: set if a client has changed where metrics are sent.
    """

    def __init__(self, home: Home, settings: ServiceParameters, clock: Clock) -> None:
        self.home = home
        self.settings = settings
        self.clock = clock
        self.started = clock.now()
        self.users = Users(home)
        self.sign_in = SignIn(self.users, clock, settings.session_seconds)
        self.shells = Shells(home, clock, self.sign_in.is_live, settings.session_seconds, self.report)
        self.refused_sign_ins = RefusedSignIns(clock)
        self.password_worker = ThreadPoolExecutor(1, thread_name_prefix="sign-in")
        self.workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="request")
        self.change_workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="change")
        self.statement_workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="statement")
        self.tasks = TaskScheduler(home, clock)
        self.undo_again = threading.Event()
        self.metrics_changed = threading.Event()
        self.long_requests: OrderedDict[str, LongRequest] = OrderedDict()
        self._events = EventLog(home, clock)
        self.audit = Audit(self.event, clock)
        self.access = AccessControl(home, RefusedSignIns(clock), self._events)
        self.locks = Locks()
        self.silence_seconds = SILENCE_SECONDS
        self._guard = threading.Lock()
        self._number = 0
        self.free_statements = WORKERS
        self.free_logins = MOST_LOGINS

    @cached_property
    def collector(self) -> HomeCollector:
        """The collector of the home's metrics; its library is loaded at the first use."""
        from ggshell.service.metrics import HomeCollector

        return HomeCollector(self.home, self.clock, self._certificate_end())

    def _certificate_end(self) -> int | None:
        """Return until when the certificate of the service is valid (microseconds), None without TLS or a file."""
        path = self.home.resolve(self.settings.certificate or CERTIFICATE)
        if self.settings.plaintext or not path.exists():
            return None
        return read_certificate(path).not_after

    @property
    def bounds(self) -> Bounds:
        """Which files users may name."""
        return Bounds.of(self.home, self.settings)

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to ggserr.log. Raises DiskError."""
        self._events.write(severity, code, _LOGGED_AS, text)

    def report(self, error: GgsError) -> None:
        """Write an error of a background thread to ggserr.log. Raises DiskError."""
        self.event(Severity.WARNING, error.code, str(error))

    def statement_place(self) -> Callable[[], None]:
        """Take one of the places of statements of shells; return what gives it back. Raises HttpError 503 if none is free."""
        with self._guard:
            if not self.free_statements:
                text = f"{WORKERS} statements of shells are being carried out"
                raise HttpError(503, text, hint="repeat the statement when one of them has ended")
            self.free_statements -= 1
        return self._statement_ended

    def _statement_ended(self) -> None:
        with self._guard:
            self.free_statements += 1

    def limit(self, seconds: float = math.inf) -> TimeLimit:
        """Return the limit for the databases of a request that may take so many seconds altogether."""
        return TimeLimit(self.clock, self.silence_seconds, seconds)

    @contextmanager
    def database(self) -> Iterator[None]:
        """Hold one of the places of requests that use a database. Raises HttpError 503 immediately if none is free."""
        with self._guard:
            if not self.free_logins:
                raise HttpError(
                    503,
                    f"{MOST_LOGINS} requests already wait for databases",
                    hint="repeat the request when they have ended",
                )
            self.free_logins -= 1
        try:
            yield
        finally:
            with self._guard:
                self.free_logins += 1

    def follow(
        self,
        user: Principal,
        method: str,
        path: str,
        future: Future[Answer | RawAnswer],
        limit: TimeLimit | None = None,
    ) -> LongRequest:
        """Keep a request whose result the client will ask for later. ``limit``: that of its databases."""
        with self._guard:
            self._number += 1
            found = LongRequest(
                str(self._number), user.name, user.identity, method, path, self.clock.now(), future, limit
            )
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
