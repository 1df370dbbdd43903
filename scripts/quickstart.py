"""The program of ``scripts/quickstart``: databases, two homes, a workload, and a comparison row by row.

The source home sends its trails to the target home over TLS, as it would to another machine. Every step reports what it does
and how long it took. When the program ends, also after Ctrl-C, no process is left running. The homes keep their reports and
trails until the next run deletes them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from ggshell.demo import load
from ggshell.demo.cli import store_aliases
from ggshell.demo.load import has_marker, send_marker
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import DemoServers, exists, open_servers
from ggshell.errors import GgsError
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

SCRIPTS = Path(__file__).resolve().parent
STEPS = 13
PAIRS = ((load.SCHEMA, load.SCHEMA), (load.SCHEMA, load.MIRROR))
LAG_SECONDS = 90.0
MARK = ".quickstart"
PORT = "7811"
"""The port of the target home's service, as the files in ``quickstart.d`` name it."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WATCH_SOURCE = "INFO ALL; STATS EXTRACT ext1, TOTAL, TABLE shop.orders; LAG EXTRACT *"
WATCH_TARGET = "INFO ALL; STATS REPLICAT rep2, TOTAL, TABLE shop.orders; LAG REPLICAT *"


class Failed(Exception):  # noqa: N818
    """The quickstart cannot continue; the message has the reason."""


class Quickstart:
    """One run in one folder, which has the source home, the target home and the database servers."""

    def __init__(self, folder: Path, seconds: float, rate: float, *, spark: bool) -> None:
        self.folder = folder
        self.source = folder / "source"
        self.target = folder / "target"
        self.spark = spark
        self.seconds = seconds
        self.rate = rate
        self._step = 1  # the environment was the first
        self._pause = threading.Event()
        self._mine = False  # nothing is ended in a home that is not the quickstart's
        self._workload: subprocess.Popen[str] | None = None

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """A progress line, completed with the time that the step took."""
        self._step += 1
        print(f"[{self._step:2}/{STEPS}] {text}", flush=True)
        began = time.monotonic()
        yield
        print(f"        {time.monotonic() - began:.1f} s", flush=True)

    def run(self) -> bool:
        """Run all steps and return whether source and targets are equal."""
        with self.step(f"two homes: {self.source} and {self.target}"):
            check_folder(self.folder)
            self._mine = True
            self.clean_up()
            empty_folder(self.folder)
            port = free_port(PORT)
            for home in (self.source, self.target):
                copy_files(SCRIPTS / "quickstart.d" / home.name, home, port)
        servers = open_servers(self.folder)
        # An interrupted start would leave a server running that no later run finds.
        with self.step("two PostgreSQL servers: north and south"), undisturbed():
            servers.start()
        self._fill(servers)
        with self.step("target home: service and Replicats: ggshell scripts/quickstart.d/target/setup.oby"):
            store_aliases(servers, self.target)  # also the alias north, for COMPARE
            self._require(self.target, "--echo", "setup.oby")
        with self.step("peers: each home records the fingerprint of the other home's certificate"):
            self._introduce(port)
        with self.step("source home: Extract, path and pump: ggshell scripts/quickstart.d/source/setup.oby"):
            store_aliases(servers, self.source, ("north",))
            self._replicate(servers)
        with self.step(f"the workload continues for {self.seconds:.0f} s"):
            self._let_work()
            self._show(WATCH_SOURCE, WATCH_TARGET)
        with self.step("the workload stops; waiting until the lag is zero"):
            print(f"        {self._stop_workload()}")
            self._wait_for_lag(servers)
            self._show("INFO ALL", "INFO ALL; DBLOGIN USERIDALIAS south; LAG HEARTBEAT")
        with self.step("source against target, row by row: COMPARE"):
            codes = [
                self._ggshell(self.target, "-c", f"COMPARE north TO south, TABLE {here}.*, INTO {there}.*")
                for here, there in PAIRS
            ]
            equal = not any(codes)
        with self.step("stopping the processes"):
            self._show("STOP ER *; STOP DISTPATH dp1; STOP MGR !", "STOP ER *; STOP SERVICE; STOP MGR !")
        with self.step("two queries about the trails and heartbeats: ggshell scripts/queries.oby"):
            self._ask()
        self.clean_up()
        return equal

    def _introduce(self, port: str) -> None:
        """Make each home a peer of the other one."""
        address = f"127.0.0.1:{port}"
        source, target = self._fingerprint(self.source), self._fingerprint(self.target)
        for home, statement in (
            (self.source, f"ADD PEER target, ADDRESS {address}, FINGERPRINT {target}"),
            (self.target, f"ADD PEER source, FINGERPRINT {source}"),
        ):
            print(f"        {home.name} home: {statement}", flush=True)
            self._require(home, "-c", statement)

    def _fingerprint(self, home: Path) -> str:
        """Return the fingerprint that INFO PEER shows first: that of the home itself. Raises Failed."""
        command = self._command(home, "--format", "json", "-c", "INFO PEER")
        told = subprocess.run(command, cwd=home, stdout=subprocess.PIPE, text=True, check=False)
        if told.returncode != 0:
            raise Failed(f"INFO PEER in {home} ended with exit code {told.returncode}")
        answer = json.loads(told.stdout)
        return str(answer["rows"][0][answer["columns"].index("fingerprint")])

    def _ask(self) -> None:
        """Show the results of the queries and compare those of both engines. Raises Failed if they differ."""
        queries = str(SCRIPTS / "queries.oby")
        self._ggshell(self.target, "--engine", "local", queries)
        answers = []
        for engine in ("local", "spark") if self.spark else ("local",):
            if engine == "spark":
                print("        the same queries on Spark, which takes some seconds to start", flush=True)
            began = time.monotonic()
            command = self._command(self.target, "--engine", engine, "--format", "json", queries)
            told = subprocess.run(command, cwd=self.target, stdout=subprocess.PIPE, text=True, check=False)
            if told.returncode != 0:
                raise Failed(f"{queries} ended with exit code {told.returncode} on engine {engine}")
            answers.append([json.loads(line)["rows"] for line in told.stdout.splitlines()])
            rows = sum(map(len, answers[-1]))
            print(f"        {engine}: {rows} rows in {time.monotonic() - began:.1f} s, including its start")
        if self.spark and not same(*answers):
            raise Failed("the two engines do not return the same rows")
        print("        both engines return the same rows" if self.spark else "        Spark is not used (--no-spark)")

    def _fill(self, servers: DemoServers) -> None:
        with self.step("schema shop with foreign keys, and its rows in north"):
            load.prepare_database(servers, "north", (load.SCHEMA,))
            load.prepare_database(servers, "south", (load.SCHEMA, load.MIRROR))
            with psycopg.connect(servers.dsn("north"), autocommit=True) as connection:
                print(f"        {load.load_rows(connection):,} rows")
        with self.step("the same rows in south, twice: schema shop and schema mirror"):
            print(f"        {load.copy_rows(servers.dsn('north'), servers.dsn('south'), PAIRS):,} rows copied")

    def _replicate(self, servers: DemoServers) -> None:
        """Set up the source home. The workload starts as soon as Extract has its start point, so that no row is missed."""
        start_point = self.source / "dirchk" / "EXT1.cpe"
        command = self._command(self.source, "--auto-manager", "--echo", "setup.oby")
        with subprocess.Popen(command, cwd=self.source) as script:
            try:
                self._until(lambda: script.poll() is not None or start_point.exists(), LAG_SECONDS)
                if start_point.exists():
                    self._start_workload(servers)
                script.wait()
            except BaseException:
                script.kill()
                raise
        if script.returncode != 0:
            raise Failed(f"source/setup.oby ended with exit code {script.returncode}")

    def _start_workload(self, servers: DemoServers) -> None:
        command = [
            sys.executable,
            "-m",
            "ggshell.demo.workload",
            "--dsn",
            servers.dsn("north"),
            "--rate",
            str(self.rate),
        ]
        self._workload = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _let_work(self) -> None:
        if self._workload is None:
            raise Failed("the workload was not started")
        ended = time.monotonic() + self.seconds
        while time.monotonic() < ended:
            if self._workload.poll() is not None:
                raise Failed("the workload ended by itself")
            self._check_groups()
            self._pause.wait(0.5)

    def _stop_workload(self) -> str:
        if self._workload is None:
            return ""
        workload, self._workload = self._workload, None
        workload.terminate()
        output, _ = workload.communicate(timeout=30)
        if workload.returncode != 0:
            raise Failed(f"the workload ended with exit code {workload.returncode}")
        return output.strip()

    def _wait_for_lag(self, servers: DemoServers) -> None:
        """Send a last transaction and wait until it is visible in each target: then all earlier ones are too."""
        marker = send_marker(servers.dsn("north"))
        with psycopg.connect(servers.dsn("south"), autocommit=True) as south:
            for _, schema in PAIRS:

                def arrived(schema: str = schema) -> bool:
                    self._check_groups()
                    return has_marker(south, schema, marker)

                if not self._until(arrived, LAG_SECONDS):
                    self._show("INFO ALL; LAG ER *", "INFO ALL; LAG ER *")
                    raise Failed(f"the last transaction did not reach schema {schema} within {LAG_SECONDS:.0f} s")

    def _until(self, done: Callable[[], bool], seconds: float) -> bool:
        limit = time.monotonic() + seconds
        while not done():
            if time.monotonic() > limit:
                return False
            self._pause.wait(0.1)
        return True

    def _check_groups(self) -> None:
        """Raise Failed, with the end of its report, if a group has abended."""
        for home in (Home(self.source), Home(self.target)):
            for entry in home.groups():
                state, _ = state_of(home.process(entry.group, entry.type))
                if state is ProcessState.ABENDED:
                    path = home.report(entry.group)
                    tail = path.read_text(errors="replace").splitlines()[-25:] if path.exists() else []
                    raise Failed(f"{entry.type} {entry.group} has abended; the end of {path}:\n" + "\n".join(tail))

    def _command(self, home: Path, *words: str) -> list[str]:
        return [str(Path(sys.executable).with_name("ggshell")), "--home", str(home), *words]

    def _ggshell(self, home: Path, *words: str) -> int:
        """Run ggshell in a home and return its exit code."""
        return subprocess.run(self._command(home, *words), cwd=home, check=False).returncode

    def _require(self, home: Path, *words: str) -> None:
        """Run ggshell in a home. Raises Failed if it does not succeed."""
        code = self._ggshell(home, *words)
        if code != 0:
            raise Failed(f"ggshell {' '.join(words)} in {home} ended with exit code {code}")

    def _show(self, source: str, target: str) -> None:
        """Run statements in both homes."""
        for home, statements in ((self.source, source), (self.target, target)):
            print(f"\n        {home.name} home", flush=True)
            self._ggshell(home, "--continue-on-error", "-c", statements)

    def clean_up(self) -> None:
        """End everything that this run or an earlier run in this folder has started."""
        if not self._mine:
            return
        if self._workload is not None:
            self._workload.kill()
            self._workload.wait()
        self._end_processes()
        if exists(self.folder):
            open_servers(self.folder).stop()
        self._end_processes()  # those that were starting while the others ended

    def _end_processes(self) -> None:
        for home in (self.source, self.target):
            end_processes(home)


def same(left: Any, right: Any) -> bool:
    """Whether two results are the same; averages of many numbers may differ in their last digits."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return bool(left == right)


def check_folder(folder: Path) -> None:
    """Create the folder, or use that of an earlier quickstart. Raises Failed for a folder with other contents."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / MARK).exists():
        raise Failed(f"{folder} is not empty and was not created by an earlier quickstart; choose another --home")
    (folder / MARK).touch()


def empty_folder(folder: Path) -> None:
    """Delete the homes and servers of an earlier run."""
    if exists(folder):
        open_servers(folder).remove()
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARK:
            path.unlink()


def copy_files(files: Path, home: Path, port: str) -> None:
    """Copy the files of a home; ``port`` replaces the port of the target's service."""
    shutil.copytree(files, home)
    for path in home.rglob("*.*"):
        path.write_text(path.read_text().replace(PORT, port))


def free_port(wanted: str) -> str:
    """Return the wanted port, or another one if a program uses it."""
    for port in (int(wanted), 0):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return str(probe.getsockname()[1])
    raise Failed("no port is free")


def _interrupt(number: int, _: Any) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay an interruption until the block has ended."""
    caught: list[int] = []
    before = {number: signal.signal(number, lambda number, _: caught.append(number)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def main() -> int:
    """Return 0 if source and target are equal, 1 if not or if a step failed, 130 after an interruption."""
    parser = argparse.ArgumentParser(prog="scripts/quickstart", description=__doc__)
    parser.add_argument(
        "--home",
        type=Path,
        default=SCRIPTS.parent / "quickstart-home",
        help="the folder of both homes and of the servers",
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="how long the workload continues after the groups have started"
    )
    parser.add_argument("--no-spark", action="store_true", help="run the two queries only on DuckDB")
    parser.add_argument("--rate", type=float, default=200.0, help="transactions per second of the workload")
    options = parser.parse_args()
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    run = Quickstart(options.home.resolve(), options.seconds, options.rate, spark=not options.no_spark)
    began, code = time.monotonic(), 1
    try:
        equal = run.run()
        code = 0 if equal else 1
        words = "source and target are equal" if equal else "SOURCE AND TARGET DIFFER"
        print(f"{words}; {time.monotonic() - began:.0f} s. Reports and trails are in {run.folder}")
    except (Failed, GgsError, psycopg.Error, subprocess.SubprocessError, OSError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted: stopping all processes", file=sys.stderr)
        code = 130
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        run.clean_up()
    return code


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
