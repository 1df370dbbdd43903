"""Spark's driver on this machine, for every master but a Spark Connect server: Java, started with our launcher."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ggshell.errors import NotFoundError
from ggshell.spark import java as javas
from ggshell.spark.dialect import SPARK_SETTINGS
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.warehouse.dir": "",
    "spark.sql.catalogImplementation": "in-memory",
}

END_SECONDS: Final = 10.0
_LOST: Final = (
    "Py4JNetworkError",
    "SparkContext was shut down",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
    "Error while sending",
)
_LOGGERS: Final = ("SQLQueryContextLogger", "pyspark.sql.connect.logging", "pyspark.sql.connect.client.logging")


class Driver:
    """Starts the session and knows its Java; what Java prints goes to the log."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._java: javas.Java | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> SparkSession:
        """The session.  Raises NotFoundError without pyspark, StateError without a Java."""
        self._java = javas.find_java()
        self._folder = tempfile.TemporaryDirectory(prefix="ggshell-spark-")
        folder = Path(self._folder.name)
        launcher = javas.write_launcher(self._java, folder, self._log)
        builder = session_builder(self._log).master(self._settings.effective_master).appName("ggshell")
        options = {**_OPTIONS, "spark.driver.memory": self._settings.memory, **SPARK_SETTINGS, **self._settings.options}
        options["spark.sql.warehouse.dir"] = options["spark.sql.warehouse.dir"] or str(folder / "warehouse")
        for key, value in options.items():
            builder = builder.config(key, value)
        with _environment({"JAVA_HOME": str(launcher), **python_environment()}):
            return builder.getOrCreate()  # type: ignore[no-any-return]

    @property
    def java(self) -> str:
        """Which Java it runs on."""
        return "" if self._java is None else f"{self._java.version} ({self._java.source})"

    def cores(self, spark: SparkSession) -> int:
        return int(spark.sparkContext.defaultParallelism)

    def make_active(self, spark: SparkSession) -> None:
        """Let Java's side of this thread know the session: it was started in another, and what is planned outside of a
        query (a writer's data source, ``frame.rdd``) looks for it there.  PySpark does so only within ``createDataFrame``."""
        jvm = spark.sparkContext._jvm
        type(spark)._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)

    @contextmanager
    def tagged(self, spark: SparkSession, tag: str) -> Iterator[None]:
        """Jobs of this thread run under a tag.  The context's, as a session's tags can be interrupted by their own thread
        only."""
        spark.sparkContext.addJobTag(tag)
        try:
            yield
        finally:
            spark.sparkContext.removeJobTag(tag)

    def interrupt(self, spark: SparkSession, tag: str) -> None:
        """End the jobs of a tag."""
        spark.sparkContext.cancelJobsWithTag(tag)

    def tasks(self, spark: SparkSession) -> tuple[int, int]:
        """How many tasks of the running stages are done, and how many there are."""
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    def is_gone(self, spark: SparkSession) -> bool:
        """Whether Java is no more."""
        process = java_process(spark)
        return process is None or process.poll() is not None

    def has_ended(self, spark: SparkSession, error: BaseException, *, expected: bool = False) -> bool:
        """Whether a failure comes of Java's end, which may take a moment to be seen; ``expected``: or will end it."""
        if not expected and not any(word in f"{type(error).__name__} {error}" for word in _LOST):
            return self.is_gone(spark)
        process = java_process(spark)
        if process is None:
            return True
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self, spark: SparkSession | None) -> None:
        """End Java, or tidy up behind one that has ended: PySpark would go on with it for ever."""
        if spark is not None:
            _end(spark)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _end(spark: SparkSession) -> None:
    """Stop a session and its Java, also one that has ended, and have PySpark forget both."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Sessions

    process, gateway = java_process(spark), SparkContext._gateway
    if process is None:
        return  # another session of this process had the same Java, and has ended it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a Java that has ended before
        try:
            spark.stop()
        except Exception:  # noqa: BLE001 - Py4J's; what matters is that Java ends, which is seen to below
            process.kill()
    Sessions._instantiatedSession = Sessions._activeSession = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    if gateway is not None:
        gateway.shutdown()
    process.stdin.close()  # Java ends when its standard input does
    process.wait()


def java_process(spark: SparkSession) -> Any:
    """The process of the driver's Java; None behind its end."""
    gateway: Any = spark.sparkContext._gateway
    return gateway.proc if gateway is not None else None


def session_builder(log: Path) -> Any:
    """PySpark's builder of sessions.  Raises NotFoundError without pyspark."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that pyspark could use and we do not
        try:
            from pyspark.logger import PySparkLogger
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise NotFoundError(
                f"pyspark is not installed ({error})", code="GGS-00706", hint="pip install 'ggshell[spark]'"
            ) from error
    log.parent.mkdir(parents=True, exist_ok=True)
    for name in _LOGGERS:  # they would write to the terminal
        logger: Any = PySparkLogger.getLogger(name)
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.addHandler(logging.FileHandler(log, delay=True))
        logger.propagate = False
    root = logging.getLogger()
    if not root.handlers:  # Py4J tells it of a Java that dies, and without a handler that goes to the terminal
        root.addHandler(logging.FileHandler(log, delay=True))
    return SparkSession.builder


def python_environment() -> dict[str, str]:
    """What Spark's Python processes need to find this program: the same Python, and where its packages are."""
    import ggshell

    root = str(Path(ggshell.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "")
    path = root if not known else known if root in known.split(os.pathsep) else f"{root}{os.pathsep}{known}"
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Variables that a child is to see, put back afterwards; Spark's own launcher reads no others."""
    before = {name: os.environ.get(name) for name in [*changes, "SPARK_REMOTE"]}
    os.environ.update(changes)
    os.environ.pop("SPARK_REMOTE", None)  # a master was given: Spark refuses both
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
