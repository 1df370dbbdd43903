"""The Spark session: started once, in the background, kept warm, shared by all that asks; any master.

A question runs under a tag of its own, so that Ctrl-C ends it and not the session.
"""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ggshell.clock import SystemClock
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError
from ggshell.spark.dialect import SPARK_SETTINGS
from ggshell.spark.driver import Driver
from ggshell.spark.remote import Remote
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
LAST_BYTES = 1 << 16
LOOK_SECONDS = 0.2
CANCEL_SECONDS = 3.0
"""So long Ctrl-C waits for the jobs to end; they are ended behind it as well."""


class Facts(NamedTuple):
    """What INFO SPARK says of the session; ``java`` is empty where none is needed or none was started."""

    state: str
    master: str
    version: str = ""
    cores: int = 0
    java: str = ""
    seconds: float = 0.0
    log: str = ""


class WarmSession:
    """At most one session; whoever asks first waits for it, unless ``warm`` was called before."""

    def __init__(self, settings: Settings, log: Path) -> None:
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

    def warm(self) -> None:
        """Begin to start it, and return at once."""
        with self._lock:
            if self._thread is None:
                self._settled = threading.Event()
                self._thread = threading.Thread(
                    target=_and_then, args=(self._start, self._settled), name="spark-start", daemon=True
                )
                self._thread.start()

    def get(self) -> SparkSession:
        """The session, when it has started.  Raises NotFoundError without pyspark, StateError without a Java,
        ConnectionLostError when it does not start."""
        if self._spark is not None and self._link.is_gone(self._spark):
            self.close()  # it has ended while nobody asked
        self.warm()
        while not self._settled.wait(LOOK_SECONDS):
            pass  # so that Ctrl-C is seen
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

    @property
    def is_started(self) -> bool:
        return self._spark is not None

    def cores(self, spark: SparkSession) -> int:
        """How many tasks can run at once; 0 where only a server knows."""
        return self._link.cores(spark)

    def facts(self) -> Facts:
        """What there is, without waiting."""
        master = self.settings.shown_master
        if self._spark is None:
            state = "starting" if self.is_starting else "not started"
            return Facts(state, master, log=str(self._log))
        spark, link = self._spark, self._link
        version = str(spark.version)
        return Facts("running", master, version, link.cores(spark), link.java, self._seconds, str(self._log))

    def run(self, work: Callable[[SparkSession], _T], told: Callable[[str], None] | None = None) -> _T:
        """Do something with the session in a thread of its own; Ctrl-C here ends its jobs.

        ``told`` hears how far the jobs are, a few times a second.  Raises whatever the work does, and ConnectionLostError
        when Spark itself has ended; the next question starts it again.
        """
        spark = self.get()
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

        over = threading.Event()
        threading.Thread(target=_and_then, args=(tagged, over), name=tag, daemon=True).start()
        try:
            while not over.wait(LOOK_SECONDS):
                if told is not None:
                    told(self._progress(spark))
        except KeyboardInterrupt:
            canceller = threading.Thread(target=self._cancel, args=(spark, tag, over), name=f"{tag}-end", daemon=True)
            canceller.start()
            over.wait(CANCEL_SECONDS)
            raise
        if failed:
            raise self._failure(spark, failed[0], said_before) from failed[0].__cause__
        return done[0]

    def _cancel(self, spark: SparkSession, tag: str, over: threading.Event) -> None:
        """End all jobs of a tag until its work is over: what is only being planned has none yet, and begins one later."""
        while not over.is_set():
            try:
                self._link.interrupt(spark, tag)
            except Exception:  # noqa: BLE001 - Java may have ended meanwhile, and its work with it
                return
            over.wait(LOOK_SECONDS)

    def _failure(self, spark: SparkSession, error: BaseException, said_before: int) -> BaseException:
        """What a failure of the work is: its own, or Spark's end, which out of memory may come a moment later."""
        no_memory = self._said_no_memory(said_before)
        if self._link.has_ended(spark, error, expected=no_memory):
            self.close()
            if not no_memory:
                lost = ConnectionLostError(
                    "Spark has ended while it worked",
                    code="GGS-00704",
                    hint=f"asked again, it is started anew; {self._log} may say why",
                )
                lost.__cause__ = error
                return lost
        return out_of_memory() if no_memory else error

    @property
    def lacked_memory(self) -> bool:
        """Whether Java has said so since it was started."""
        return self._said_no_memory(self._log_start)

    def _said_no_memory(self, first: int) -> bool:
        return any("OutOfMemoryError" in line for line in self._last_lines(first))

    def _log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def _last_lines(self, first: int) -> list[str]:
        """The end of what the log says from a place on."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as log:
            log.seek(max(first, log.seek(0, os.SEEK_END) - LAST_BYTES))
            return log.read().decode(errors="replace").splitlines()

    def _progress(self, spark: SparkSession) -> str:
        """``[####......] 12/30``; empty where nothing is known."""
        try:
            ready, whole = self._link.tasks(spark)
        except Exception:  # noqa: BLE001 - Java may just have ended, which the work itself will tell
            return ""
        return bar(ready, whole) if whole else ""

    def close(self) -> None:
        """End it; a session that is only being started goes with this process."""
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
        from ggshell.spark import register

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key, value in SPARK_SETTINGS.items():
                spark.conf.set(key, value)
        register(spark)

    def _failed(self, error: Exception) -> GgsError:
        where = self.settings.shown_master
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        told = last_said(self._last_lines(self._log_start))
        return ConnectionLostError(
            f"Spark ({where}) does not start: {told or text}",
            code="GGS-00705",
            hint=f"the whole story is in {self._log}" if not self.settings.is_remote else "is the server there?",
        )


def out_of_memory() -> DatabaseError:
    """What to tell of a Java without memory."""
    hint = "memory in dirprm/spark.conf; or more, smaller partitions"
    return DatabaseError("Spark ran out of memory", code="GGS-00708", hint=hint)


def last_said(lines: Sequence[str]) -> str:
    """The last line of a log that tells of an error, none of a stack."""
    words = ("rror", "xception")
    said = (line.strip() for line in reversed(lines) if not line.startswith(("\t", "    at ", "  at ")))
    return next((line for line in said if any(word in line for word in words)), "")


def _and_then(work: Callable[[], None], over: threading.Event) -> None:
    """Work, and say when it is over.  An event, since Python before 3.13 takes a thread for ended when Ctrl-C comes while
    somebody joins it."""
    try:
        work()
    finally:
        over.set()


def bar(ready: int, whole: int, width: int = 20) -> str:
    """A progress bar of tasks."""
    full = ready * width // whole
    return f"[{'#' * full}{'.' * (width - full)}] {ready}/{whole}"
