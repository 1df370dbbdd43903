"""The Spark session: started once, in the background, kept warm, shared by all that asks; any master.

What Java prints goes to ``dirrpt/spark.log``.  A question runs under a tag of its own, so that Ctrl-C ends it and not the
session.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ggshell.clock import SystemClock
from ggshell.errors import ConnectionLostError, GgsError, NotFoundError
from ggshell.spark import java as javas
from ggshell.spark.dialect import SPARK_SETTINGS
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
LAST_LINES = 12
LOOK_SECONDS = 0.2
_OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.warehouse.dir": "",
    "spark.sql.catalogImplementation": "in-memory",
}


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
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._spark: SparkSession | None = None
        self._error: BaseException | None = None
        self._java: javas.Java | None = None
        self._seconds = 0.0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tags = itertools.count(1)

    def warm(self) -> None:
        """Begin to start it, and return at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._start, name="spark-start", daemon=True)
                self._thread.start()

    def get(self) -> SparkSession:
        """The session, when it has started.  Raises NotFoundError without pyspark, StateError without a Java,
        ConnectionLostError when it does not start."""
        self.warm()
        thread = self._thread
        while thread is not None and thread.is_alive():
            thread.join(LOOK_SECONDS)  # so that Ctrl-C is seen
        if self._error is not None:
            error, self._error, self._thread = self._error, None, None
            raise error
        if self._spark is None:
            raise ConnectionLostError("the Spark session has ended", code="GGS-00704")
        self._make_active(self._spark)
        return self._spark

    @property
    def is_started(self) -> bool:
        return self._spark is not None

    def facts(self) -> Facts:
        """What there is, without waiting."""
        master = self.settings.effective_master
        if self._spark is None:
            state = "starting" if self._thread is not None and self._thread.is_alive() else "not started"
            return Facts(state, master, log=str(self._log))
        cores = 0 if self.settings.is_remote else int(self._spark.sparkContext.defaultParallelism)
        told = f"{self._java.version} ({self._java.source})" if self._java is not None else ""
        return Facts("running", master, str(self._spark.version), cores, told, self._seconds, str(self._log))

    def run(self, work: Callable[[SparkSession], _T], told: Callable[[str], None] | None = None) -> _T:
        """Do something with the session in a thread of its own; Ctrl-C here ends its jobs.

        ``told`` hears how far the jobs are, a few times a second.
        """
        spark = self.get()
        tag = f"ggshell-{os.getpid()}-{next(self._tags)}"
        done: list[_T] = []
        failed: list[BaseException] = []

        def tagged() -> None:
            try:
                self._make_active(spark)
                with self._tagged(spark, tag):
                    done.append(work(spark))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the answer is awaited
                failed.append(error)

        thread = threading.Thread(target=tagged, name=tag, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(LOOK_SECONDS)
                if told is not None and thread.is_alive():
                    told(self._progress(spark))
        except KeyboardInterrupt:
            spark.interruptTag(tag)
            raise
        if failed:
            raise failed[0]
        return done[0]

    def _make_active(self, spark: SparkSession) -> None:
        """Let Java's side of this thread know the session: it was started in another, and what is planned outside of a
        query (a writer's data source, ``frame.rdd``) looks for it there.  PySpark does so only within ``createDataFrame``."""
        if not self.settings.is_remote:
            jvm = spark.sparkContext._jvm
            type(spark)._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)

    @contextmanager
    def _tagged(self, spark: SparkSession, tag: str) -> Iterator[None]:
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)

    def _progress(self, spark: SparkSession) -> str:
        """``[####......] 12/30``; empty where nothing is known."""
        if self.settings.is_remote:
            return ""
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        whole = sum(stage.numTasks for stage in known)
        ready = sum(stage.numCompletedTasks for stage in known)
        return bar(ready, whole) if whole else ""

    def close(self) -> None:
        """End it; a session that is only being started goes with this process."""
        spark, self._spark, self._thread = self._spark, None, None
        if spark is not None:
            spark.stop()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        began = SystemClock().steady()
        try:
            self._spark = self._connect() if self.settings.is_remote else self._launch()
            self._prepare(self._spark)
            self._seconds = SystemClock().steady() - began
        except GgsError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - Py4J, gRPC and Java raise what they like; the cause is kept
            self._error = self._failed(error)
            self._error.__cause__ = error

    def _prepare(self, spark: SparkSession) -> None:
        from ggshell.spark import register

        for key, value in SPARK_SETTINGS.items():
            spark.conf.set(key, value)
        register(spark)

    def _connect(self) -> SparkSession:
        builder = _builder().remote(self.settings.effective_master)
        for key, value in self.settings.options.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()  # type: ignore[no-any-return]

    def _launch(self) -> SparkSession:
        self._java = javas.find_java()
        self._folder = tempfile.TemporaryDirectory(prefix="ggshell-spark-")
        folder = Path(self._folder.name)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        launcher = javas.write_launcher(self._java, folder, self._log)
        builder = _builder().master(self.settings.effective_master).appName("ggshell")
        options = {**_OPTIONS, "spark.driver.memory": self.settings.memory, **SPARK_SETTINGS, **self.settings.options}
        options["spark.sql.warehouse.dir"] = options["spark.sql.warehouse.dir"] or str(folder / "warehouse")
        for key, value in options.items():
            builder = builder.config(key, value)
        with _environment({"JAVA_HOME": str(launcher), **python_environment()}):
            return builder.getOrCreate()  # type: ignore[no-any-return]

    def _failed(self, error: Exception) -> GgsError:
        where = self.settings.effective_master
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        lines = self._log.read_text(errors="replace").splitlines()[-LAST_LINES:] if self._log.exists() else []
        told = next((line for line in reversed(lines) if "rror" in line or "xception" in line), "")
        return ConnectionLostError(
            f"Spark ({where}) does not start: {told or text}",
            code="GGS-00705",
            hint=f"the whole story is in {self._log}" if not self.settings.is_remote else "is the server there?",
        )


def bar(ready: int, whole: int, width: int = 20) -> str:
    """A progress bar of tasks."""
    full = ready * width // whole
    return f"[{'#' * full}{'.' * (width - full)}] {ready}/{whole}"


def python_environment() -> dict[str, str]:
    """What Spark's Python processes need to find this program: the same Python, and where its packages are."""
    import ggshell

    root = str(Path(ggshell.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "")
    path = root if not known else known if root in known.split(os.pathsep) else f"{root}{os.pathsep}{known}"
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


def _builder() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that pyspark could use and we do not
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise NotFoundError(
                f"pyspark is not installed ({error})", code="GGS-00706", hint="pip install 'ggshell[spark]'"
            ) from error
    return SparkSession.builder


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Variables that a child is to see, put back afterwards; Spark's own launcher reads no others."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
