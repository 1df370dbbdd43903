"""A standalone cluster of Spark for tests: one master and two workers of one core each, processes of this machine.

The Python of its tasks is an environment without ggshell: the package must travel with the session. Another process holds the
driver, because the process of the tests has a session of its own (``warm``).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import secrets
import subprocess
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy
import pyspark
from processes import until

from ggshell.errors import GgsError
from ggshell.query.driver import find_java, write_launcher
from ggshell.query.engines import Engines
from ggshell.query.session import WarmSession
from ggshell.query.settings import EngineChoice, QuerySettings

_T = TypeVar("_T")
_HOME: Final = Path(pyspark.__file__).parent
_DAEMONS: Final = "org.apache.spark.deploy"
_SECRET: Final = "spark.authenticate.secret"
EXECUTOR_MEMORY: Final = "512m"


class Daemon(NamedTuple):
    """A process of the cluster, and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, pattern: str) -> str:
        """Wait until the log has a line with this pattern; return what its first group matches."""

        found: list[str] = []

        def is_there() -> bool:
            text = self.log.read_text(errors="replace")
            assert self.process.poll() is None, text[-3000:]
            found.extend(re.findall(pattern, text))
            return bool(found)

        until(f"{self.log} has {pattern}", is_there, seconds=180)
        return found[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Cluster:
    """A running cluster in a folder, with a secret of its own."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.secret = secrets.token_hex(24)
        self.python = python
        settings = {"spark.authenticate": "true", _SECRET: self.secret, "spark.network.crypto.enabled": "true"}
        self._properties = folder / "daemons.properties"
        self._properties.touch(0o600)
        self._properties.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._count = 0
        self.started: list[Daemon] = []
        self.workers: list[Daemon] = []
        self.address = ""

    def start(self) -> None:
        """Start the master and two workers, and wait until they know each other."""
        self.address = self._start("master.Master").wait_for(r"Starting Spark master at (spark://\S+)")
        self.workers = [self._start_worker(), self._start_worker()]
        for each in self.workers:
            each.wait_for("(Successfully registered with master)")

    def settings(self, **options: str) -> QuerySettings:
        """Settings of a session on this cluster."""
        own = {
            _SECRET: self.secret,
            "spark.pyspark.python": str(self.python),
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.sql.shuffle.partitions": "2",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        return QuerySettings(EngineChoice.SPARK, master=self.address, memory="512m", options=own)

    def replace_worker(self, number: int) -> None:
        """Kill a worker with its executors, and start another one."""
        self.kill_worker(number)
        self.workers[number] = self._start_worker()
        self.workers[number].wait_for("(Successfully registered with master)")

    def kill_worker(self, number: int) -> None:
        """Kill a worker; its executors are its children and end with it."""
        worker = self.workers[number]
        for child in _children(worker.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)
        worker.kill()

    def executors(self, number: int) -> list[int]:
        """The processes of the executors of a worker."""
        return _children(self.workers[number].process.pid)

    def tasks_started(self) -> int:
        """How many tasks the executors have started, those that are gone included. Workers have the logs of their executors."""
        return sum(worker.log.read_bytes().count(b"Running task ") for worker in self.started)

    def close(self) -> None:
        for each in self.started:
            if each.process.poll() is None:
                for child in _children(each.process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, 9)
                each.kill()

    def _start_worker(self) -> Daemon:
        self._count += 1
        work = self.folder / f"work{self._count}"
        arguments = ["--cores", "1", "--memory", "768m", "--work-dir", str(work), self.address]
        return self._start("worker.Worker", *arguments)

    def _start(self, name: str, *arguments: str) -> Daemon:
        """Start a daemon with a launcher of its own, which writes Java's errors to its log."""
        place = self.folder / f"{name}-{len(self.started)}"
        place.mkdir()
        log = place / "log"
        log.touch()
        write_launcher(find_java(), place, log)
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--properties-file", str(self._properties)]
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_REMOTE")}
        environment |= {"JAVA_HOME": str(place), "SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "192m"}
        process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), f"{_DAEMONS}.{name}", *common, *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=place,
        )
        self.started.append(Daemon(process, log))
        return self.started[-1]


def _children(process: int) -> list[int]:
    """Every process that descends from one."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_children(child)]
    return found


def bare_python(folder: Path, *left_out: str) -> Path:
    """A Python with the libraries of this one, but without ggshell, and without those that are ``left_out``."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    shared = Path(numpy.__file__).parents[1]
    if left_out:
        for each in shared.iterdir():
            if each.name.partition("-")[0].partition(".")[0] not in left_out and each.suffix != ".pth":
                (packages / each.name).symlink_to(each)
    else:
        (packages / "shared.pth").write_text(f"{shared}\n")
    python = folder / "bin" / "python"
    check = subprocess.run(
        [python, "-P", "-c", "import ggshell.types"], capture_output=True, check=False, cwd=folder, env={}
    )
    assert check.returncode == 1, "this Python has ggshell"
    return python


class Driver:
    """A driver in a process of its own: it runs functions of modules with its engines."""

    def __init__(self, settings: QuerySettings, folder: Path) -> None:
        (folder / "dirtmp").mkdir(parents=True, exist_ok=True)
        self.log = folder / "dirrpt" / "spark.log"
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, _open, (settings, self.log))

    def run(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Run a function of a module in the driver: its first argument is the driver's engines."""
        return self.start(work, *arguments).result(300)

    def start(self, work: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """Like ``run``, but do not wait."""
        return self._pool.submit(_work, work, arguments)

    @property
    def process(self) -> int:
        return next(iter(self._pool._processes))

    def close(self) -> None:
        with contextlib.suppress(Exception):  # a test may have killed it
            self._pool.submit(_close).result(60)
        self._pool.shutdown(cancel_futures=True)


_engines: list[Engines] = []


def _open(settings: QuerySettings, log: Path) -> None:
    _engines.append(Engines(settings, log, session=WarmSession(settings, log)))


def _work(work: Callable[..., _T], arguments: tuple[Any, ...]) -> _T:
    try:
        return work(_engines[0], *arguments)
    except GgsError:
        raise
    except Exception as error:  # noqa: BLE001 - Py4J's errors cannot be sent
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _close() -> None:
    _engines[0].close()


def serve_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster, for a fixture."""
    found = Cluster(folder, bare_python(folder / "python"))
    try:
        found.start()
        yield found
    finally:
        found.close()
