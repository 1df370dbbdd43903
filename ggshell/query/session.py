"""The Spark session: started once, in the background, kept warm and shared by all queries, for any master.

Each query runs under its own tag, so that Ctrl-C cancels the query and not the session. With a Spark Connect
server (``sc://host:port``) no Java is needed here: the session is a connection.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ggshell.clock import SystemClock, pause
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError, StateError
from ggshell.progress_text import progress_text
from ggshell.query.dialect import SPARK_SETTINGS
from ggshell.query.driver import Driver, session_builder, temporary_folder
from ggshell.query.settings import QuerySettings
from ggshell.query.shipping import PACKAGE, package_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_T = TypeVar("_T")
LAST_BYTES = 1 << 16
CHECK_SECONDS = 0.2
CANCEL_SECONDS = 3.0
"""How long Ctrl-C waits for the jobs to end. Canceling continues in the background."""
STUCK_SECONDS = 15.0
"""How long tasks of a canceled query may continue before their session ends."""


class SessionFacts(NamedTuple):
    """The output of INFO SPARK about the session; ``java`` is empty if none is needed or none was started."""

    state: str
    master: str
    version: str = ""
    cores: int = 0
    java: str = ""
    seconds: float = 0.0
    log: str = ""


class WarmSession:
    """At most one session. The first caller waits for it, unless ``warm`` was called before."""

    def __init__(self, settings: QuerySettings, log: Path) -> None:
        self.settings = settings
        self._log = log
        self._link: Driver | Remote = Remote(settings, log) if settings.is_remote else Driver(settings, log)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._settled = threading.Event()
        self._spark: SparkSession | None = None
        self._error: BaseException | None = None
        self._seconds = 0.0
        self._log_start = 0
        self._tags = itertools.count(1)
        self._works = 0

    def warm(self) -> None:
        """Start the session in the background and return immediately."""
        with self._lock:
            if self._thread is None:
                self._settled = threading.Event()
                self._thread = threading.Thread(
                    target=_and_then, args=(self._start, self._settled), name="spark-start", daemon=True
                )
                self._thread.start()

    def get(self, on_progress: Callable[[str], None] | None = None) -> SparkSession:
        """Wait for the session and return it. ``on_progress`` is informed that it is starting.

        Raises NotFoundError without pyspark, StateError without Java, ConnectionLostError if it does not start.
        """
        if self._spark is not None and self._link.is_gone(self._spark):
            self.close()  # it ended while it was idle
        self.warm()
        while not self._settled.wait(CHECK_SECONDS):  # with a limit, so that Ctrl-C is handled
            if on_progress is not None:
                on_progress("Spark is starting")
        if self._error is not None:
            error, self._error, self._thread = self._error, None, None
            raise error
        if self._spark is None:
            raise ConnectionLostError("the Spark session has ended", code="GGS-00704")
        self._link.make_active(self._spark)
        return self._spark

    @property
    def is_starting(self) -> bool:
        """Whether ``get`` would have to wait."""
        return self._thread is not None and not self._settled.is_set()

    def cores(self, spark: SparkSession) -> int:
        """How many tasks can run at once; 0 if only a server knows."""
        return self._link.cores(spark)

    def facts(self) -> SessionFacts:
        """The facts known now, without waiting."""
        master = self.settings.shown_master
        if self._spark is None:
            state = "starting" if self.is_starting else "not started"
            return SessionFacts(state, master, log=str(self._log))
        spark, link = self._spark, self._link
        version = str(spark.version)
        return SessionFacts("running", master, version, link.cores(spark), link.java, self._seconds, str(self._log))

    def run(
        self,
        work: Callable[[SparkSession], _T],
        on_progress: Callable[[str], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> _T:
        """Run work with the session in a separate thread; Ctrl-C here cancels its jobs, and so does ``stopped``.

        ``on_progress`` receives the progress of the jobs, a few times a second. Raises any error of the work, StateError if it
        was stopped, and ConnectionLostError if Spark itself has ended; the next query starts it again.
        """
        with self._working():
            return self._run(work, on_progress, stopped)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Keep the session from being ended because of tasks that do not end."""
        with self._lock:
            self._works += 1
        try:
            yield
        finally:
            with self._lock:
                self._works -= 1

    def _run(
        self,
        work: Callable[[SparkSession], _T],
        on_progress: Callable[[str], None] | None,
        stopped: Callable[[], bool],
    ) -> _T:
        spark = self.get(on_progress)
        said_before = self._log_size()
        tag = f"ggshell-{os.getpid()}-{next(self._tags)}"
        done: list[_T] = []
        failed: list[BaseException] = []

        def tagged() -> None:
            try:
                self._link.make_active(spark)
                with self._link.tagged(spark, tag):
                    done.append(work(spark))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the answer is awaited
                failed.append(error)

        over, began = threading.Event(), SystemClock().steady()
        threading.Thread(target=_and_then, args=(tagged, over), name=tag, daemon=True).start()
        try:
            while not over.wait(CHECK_SECONDS):
                _require_wanted(stopped)
                if on_progress is not None:
                    on_progress(self.progress(spark, SystemClock().steady() - began))
        except (KeyboardInterrupt, StateError):
            canceller = threading.Thread(target=self._cancel, args=(spark, tag, over), name=f"{tag}-end", daemon=True)
            canceller.start()
            over.wait(CANCEL_SECONDS)
            raise
        if failed:
            raise self._failure(spark, failed[0], said_before) from failed[0].__cause__
        return done[0]

    def _cancel(self, spark: SparkSession, tag: str, over: threading.Event) -> None:
        """Cancel the jobs of a tag until the work is over: a query that is still being planned starts its jobs later."""
        try:
            while not over.is_set():
                self._link.interrupt(spark, tag)
                over.wait(CHECK_SECONDS)
            self._end_if_stuck(spark)
        except Exception:  # noqa: BLE001 - Java may have ended meanwhile, and its work with it
            return

    def _end_if_stuck(self, spark: SparkSession) -> None:
        """End the session if tasks continue although nothing needs them; the next query starts it again.

        Some of Spark's joins never check whether their task was canceled, and would occupy a core until Spark ends.
        """
        idle_since = SystemClock().steady()
        while self._spark is spark and (self._works or self._link.running_tasks(spark)):
            with self._lock:
                now = SystemClock().steady()
                idle_since = now if self._works or self._link.has_jobs(spark) else idle_since
                stuck = now - idle_since > STUCK_SECONDS
                if stuck:
                    self.close()
            pause(CHECK_SECONDS)

    def _failure(self, spark: SparkSession, error: BaseException, said_before: int) -> BaseException:
        """The error of failed work: its own, or the end of Spark, which can follow a moment later if memory runs out."""
        no_memory = self._said_no_memory(said_before)
        if self._link.has_ended(spark, error, expected=no_memory):
            self.close()
            if not no_memory:
                lost = ConnectionLostError(
                    "Spark ended while it was working",
                    code="GGS-00704",
                    hint=f"repeat the query to start Spark again; {self._log} may say why it ended",
                )
                lost.__cause__ = error
                return lost
        return out_of_memory() if no_memory else error

    def has_ended(self, spark: SparkSession, error: BaseException) -> bool:
        """Whether an error was caused by the end of Spark."""
        return self._link.has_ended(spark, error)

    @property
    def lacked_memory(self) -> bool:
        """Whether Java has reported a lack of memory since it was started."""
        return self._said_no_memory(self._log_start)

    def _said_no_memory(self, first: int) -> bool:
        return any("OutOfMemoryError" in line for line in self._last_lines(first))

    def _log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def last_lines(self) -> list[str]:
        """The last lines that this session's Java has written to the log."""
        return self._last_lines(self._log_start)

    def _last_lines(self, first: int) -> list[str]:
        """The last lines of the log, from a position on."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as log:
            log.seek(max(first, log.seek(0, os.SEEK_END) - LAST_BYTES))
            return log.read().decode(errors="replace").splitlines()

    def progress(self, spark: SparkSession, seconds: float = 0.0) -> str:
        """The tasks of the running stages, after this time; empty if nothing is known."""
        try:
            ready, whole = self._link.tasks(spark)
        except Exception:  # noqa: BLE001 - Java may just have ended, which the work itself will tell
            return ""
        return progress_text(ready, whole, "tasks", seconds) if whole else ""

    def close(self) -> None:
        """End the session. A session that is still starting ends with this process."""
        spark, self._spark, self._thread = self._spark, None, None
        self._link.close(spark)

    def _start(self) -> None:
        began = SystemClock().steady()
        self._log_start = self._log_size()
        try:
            spark = self._link.start()
            self._prepare(spark)
            self._spark = spark
            self._seconds = SystemClock().steady() - began
        except GgsError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - Py4J, gRPC and Java raise what they like; the cause is kept
            self._error = self._failed(error)
            self._error.__cause__ = error

    def _prepare(self, spark: SparkSession) -> None:
        from ggshell.query import register

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key, value in SPARK_SETTINGS.items():
                spark.conf.set(key, value)
        register(spark)

    def _failed(self, error: Exception) -> GgsError:
        where = self.settings.shown_master
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        last_line = last_said(self._last_lines(self._log_start))
        return ConnectionLostError(
            f"Spark ({where}) did not start: {last_line or text}",
            code="GGS-00705",
            hint=f"the full error is in {self._log}"
            if not self.settings.is_remote
            else "check that the server is running",
        )


def _require_wanted(stopped: Callable[[], bool]) -> None:
    """Raise StateError if the query of a caller has been stopped."""
    if stopped():
        raise StateError("the query was canceled")


def out_of_memory() -> DatabaseError:
    """The error for a Java that ran out of memory."""
    hint = "increase memory in dirprm/spark.conf, or use more and smaller partitions"
    return DatabaseError("Spark ran out of memory", code="GGS-00708", hint=hint)


def java_ended() -> ConnectionLostError:
    """The error for a Java process of a group that was killed or has failed."""
    return ConnectionLostError(
        "Spark's Java process ended unexpectedly",
        code="GGS-00704",
        hint="START the group again; dirrpt/spark.log and the log of the system may say why it ended",
    )


def last_said(lines: Sequence[str]) -> str:
    """The last line of a log that reports an error, ignoring stack traces."""
    words = ("rror", "xception")
    said = (line.strip() for line in reversed(lines) if not line.startswith(("\t", "    at ", "  at ")))
    return next((line for line in said if any(word in line for word in words)), "")


def _and_then(work: Callable[[], None], over: threading.Event) -> None:
    """Run work and set an event at its end.

    An event is used because Python before 3.13 treats a thread as ended when Ctrl-C interrupts a join.
    """
    try:
        work()
    finally:
        over.set()


PORT: Final = 15002
RETRIES: Final = 4
"""With PySpark's default of 15, a user would wait ten minutes for a server that no longer exists."""
REACH_SECONDS: Final = 10.0
_REMOTE = re.compile(r"sc://(\[[^\]]+\]|[^:/;]+)(?::(\d+))?")


class Remote:
    """Connects to a Spark Connect server and receives its progress."""

    java = ""

    def __init__(self, settings: QuerySettings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._done = self._whole = 0

    def start(self) -> SparkSession:
        """Open the session. Raises NotFoundError without pyspark, ConnectionLostError if the server cannot be reached."""
        builder = session_builder(self._log)
        self._reach()
        from pyspark.sql.connect.client.retries import DefaultPolicy

        builder = builder.remote(self._settings.effective_master)
        for key, value in self._settings.options.items():
            builder = builder.config(key, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the server warns about settings that only it can change
            spark: Any = builder.create()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
        self._ship(spark)
        spark.registerProgressHandler(self._hear)
        return spark  # type: ignore[no-any-return]

    def _ship(self, spark: SparkSession) -> None:
        """Send the package to the server, unless it is a server of this machine that runs the same files."""
        package = package_file(temporary_folder(self._log) / "package")
        if spark.conf.get(PACKAGE, "") != package.stem:
            spark.addArtifacts(str(package), pyfile=True)

    def _reach(self) -> None:
        where = self._settings.shown_master
        match = _REMOTE.match(self._settings.effective_master)
        if match is None:
            raise ConnectionLostError(
                f"{where} is not a valid address of a Spark Connect server",
                hint="write sc://host:15002",
                code="GGS-00705",
            )
        try:
            with socket.create_connection((match[1].strip("[]"), int(match[2] or PORT)), REACH_SECONDS):
                return
        except OSError as error:
            raise ConnectionLostError(
                f"Spark ({where}) cannot be reached: {error.strerror or error}",
                code="GGS-00705",
                hint="check that the server is running",
            ) from error

    def _hear(self, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:
        self._whole = 0 if done else sum(stage.num_tasks for stage in stages)
        self._done = 0 if done else sum(stage.num_completed_tasks for stage in stages)

    def cores(self, spark: SparkSession) -> int:
        """Only the server knows the number of cores."""
        return 0

    def make_active(self, spark: SparkSession) -> None:
        """Nothing to do: sessions of a server are not bound to a thread."""

    @contextmanager
    def tagged(self, spark: SparkSession, tag: str) -> Iterator[None]:
        """Run the requests of this thread under a tag."""
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)

    def interrupt(self, spark: SparkSession, tag: str) -> None:
        """Cancel the requests of a tag."""
        spark.interruptTag(tag)

    def tasks(self, spark: SparkSession) -> tuple[int, int]:
        """The number of finished tasks in the running stages, and the number of all tasks."""
        return self._done, self._whole

    def has_jobs(self, spark: SparkSession) -> bool:
        """Always false: only the server knows."""
        return False

    def running_tasks(self, spark: SparkSession) -> int:
        """Always 0: the server watches its own tasks."""
        return 0

    def is_gone(self, spark: SparkSession) -> bool:
        """Always false: only a request would show it."""
        return False

    def has_ended(self, spark: SparkSession, error: BaseException, *, expected: bool = False) -> bool:
        """Whether a failure means that the server does not answer, or no longer has this session."""
        text = f"{type(error).__name__} {error}"
        return any(word in text for word in ("UNAVAILABLE", "RetriesExceeded", "SESSION_CLOSED", "SESSION_NOT_FOUND"))

    def close(self, spark: SparkSession | None) -> None:
        if spark is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a server that is gone
                spark.stop()
