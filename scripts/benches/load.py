"""LOAD compared with PostgreSQL's own table synchronization, a pipe between two psql, and pgcopydb, all in one run.

One table: the target has the table with its primary key. Many tables: the target is empty, and definitions, indexes and
statistics are part of the work. Memory is the sum of ggshell's processes (their private and shared pages, divided).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed, Ground, ggshell, ground, wait_until

ROWS, QUICK_ROWS = 2_000_000, 200_000
TABLES, TABLE_ROWS, QUICK_TABLE_ROWS = 50, 40_000, 2_000
JOBS = 4
TABLE_GOAL, CLONE_GOAL, MEMORY_MB = 0.8, 1.0, 400.0
_ACCOUNTS = (
    "SET ROLE ggadmin; CREATE TABLE bench.accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));"
    " RESET ROLE"
)
_PACKAGE = "pgcopydb"


def run(rounds: int, quick: bool) -> list[Figure]:
    """One table, then many tables with indexes."""
    with ground() as place:
        found = _one_table(place, rounds, QUICK_ROWS if quick else ROWS)
        return found + _many_tables(place, rounds, QUICK_TABLE_ROWS if quick else TABLE_ROWS)


def _one_table(place: Ground, rounds: int, rows: int) -> list[Figure]:
    with place.connect("north") as north, place.connect("south") as south:
        north.execute(_ACCOUNTS)
        north.execute(
            "INSERT INTO bench.accounts SELECT n, 1, 0, repeat(' ', 84) FROM generate_series(1, %s::int) n", [rows]
        )
        north.execute("VACUUM ANALYZE bench.accounts")
        north.execute("CREATE PUBLICATION bench_load FOR TABLE bench.accounts")
        south.execute(_ACCOUNTS)
    memory: list[float] = []
    sides = (_load_table(place, rows, memory), _synchronize(place, rows), _pipe(place, rows))
    _warm_up(*sides)
    ours, peer, pipe = alternate(rounds, *sides)
    return [
        less_is_better("load", "one table", "s", ours, peer, "table synchronization", TABLE_GOAL),
        less_is_better("load", "one table", "s", ours, pipe, "psql COPY | psql COPY", None),
        less_is_better("load", "memory, one table", "MB", memory[1:], [MEMORY_MB], "the limit", 1.0),
    ]


def _warm_up(*sides: Callable[[int], float]) -> None:
    """Run every side once: the first round of a server writes its files and its log for the first time."""
    alternate(1, *sides)


def _load_table(place: Ground, rows: int, memory: list[float]):
    def once(_: int) -> float:
        _clear(place)
        return _timed_load(place, "LOAD north TO south, TABLE bench.accounts, RESTART, JOBS 2", memory, rows)

    return once


def _synchronize(place: Ground, rows: int):
    source = place.servers.dsn("north")

    def once(_: int) -> float:
        _clear(place)
        with place.connect("south") as south:
            began = time.perf_counter()
            south.execute(f"CREATE SUBSCRIPTION bench_load CONNECTION '{source}' PUBLICATION bench_load")
            ready = "SELECT true FROM pg_subscription_rel WHERE srsubstate IN ('r', 's')"
            wait_until("the synchronization", lambda: south.execute(ready).fetchone(), every=0.02)
            seconds = time.perf_counter() - began
            _expect(south, rows)
            south.execute("DROP SUBSCRIPTION bench_load")
        return seconds

    return once


def _pipe(place: Ground, rows: int):
    def once(_: int) -> float:
        _clear(place)
        psql = place.program("psql")
        ends = [(psql, "-X", "-q", "-d", place.servers.dsn(name), "-c") for name in ("north", "south")]
        began = time.perf_counter()
        with subprocess.Popen([*ends[0], "COPY bench.accounts TO STDOUT"], stdout=subprocess.PIPE) as reader:
            subprocess.run([*ends[1], "COPY bench.accounts FROM STDIN"], stdin=reader.stdout, check=True)
        seconds = time.perf_counter() - began
        with place.connect("south") as south:
            _expect(south, rows)
        return seconds

    return once


def _clear(place: Ground) -> None:
    with place.connect("south") as south:
        south.execute("TRUNCATE bench.accounts")
        south.execute("CHECKPOINT")


def _expect(south: psycopg.Connection, rows: int) -> None:
    found = south.execute("SELECT count(*) FROM bench.accounts").fetchone()
    if found != (rows,):
        raise Failed(f"{found} rows arrived instead of {rows}")


def _timed_load(place: Ground, statement: str, memory: list[float], rows: int) -> float:
    """The seconds of a LOAD statement as a user runs it, with the start of ggshell."""
    began = time.perf_counter()
    with (
        subprocess.Popen(
            [ggshell(), "--home", str(place.home), "-c", statement],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
        _watched(process.pid, memory),
    ):
        output = process.communicate(timeout=600)[0]
    seconds = time.perf_counter() - began
    if process.returncode or f"{rows:,} rows" not in output:
        raise Failed(f"{statement}:\n{output[-2000:]}")
    return seconds


@contextmanager
def _watched(pid: int, memory: list[float]) -> Iterator[None]:
    """Record the most memory that a process and its children used at the same time, in MB."""
    done, most = threading.Event(), [0.0]

    def look() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], sum(map(_proportional, [pid, *_children(pid)])))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        memory.append(most[0])


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _proportional(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _many_tables(place: Ground, rounds: int, rows: int) -> list[Figure]:
    program = _pgcopydb()
    with place.connect("north") as north:
        north.execute("CREATE DATABASE many")
    with psycopg.connect(place.servers.north.dsn("many"), autocommit=True) as many:
        for number in range(TABLES):
            name = f"t{number}"
            many.execute(
                f"CREATE TABLE {name} (id int PRIMARY KEY, customer int, amount numeric(12, 2), placed timestamptz, note text)"
            )
            many.execute(
                f"INSERT INTO {name} SELECT n, n %% 1000, n * 1.25, '2026-01-01'::timestamptz + n * interval '1 s',"
                " repeat('x', 64) || n FROM generate_series(1, %s::int) n",
                [rows],
            )
            many.execute(
                f"CREATE INDEX {name}_customer ON {name} (customer); CREATE INDEX {name}_note ON {name} (note)"
            )
        many.execute("VACUUM ANALYZE")
    dsns = [server.dsn("many") for server in (place.servers.north, place.servers.south)]
    memory: list[float] = []

    def ours(_: int) -> float:
        _new_target(place)
        statement = f'LOAD "{dsns[0]}" TO "{dsns[1]}", DEFINITIONS, JOBS {JOBS}'
        return _timed_load(place, statement, memory, rows * TABLES)

    def peer(_: int) -> float:
        _new_target(place)
        return _clone(place, program, dsns)

    _warm_up(ours, peer)
    mine, theirs = alternate(rounds, ours, peer)
    return [
        less_is_better("load", f"{TABLES} tables", "s", mine, theirs, f"pgcopydb clone, {JOBS} jobs", CLONE_GOAL),
        less_is_better("load", f"memory, {TABLES} tables", "MB", memory[1:], [MEMORY_MB], "the limit", 1.0),
    ]


def _new_target(place: Ground) -> None:
    with place.connect("south") as south:
        south.execute("DROP DATABASE IF EXISTS many WITH (FORCE)")
        south.execute("CREATE DATABASE many")
        south.execute("CHECKPOINT")


def _clone(place: Ground, program: Path, dsns: list[str]) -> float:
    with tempfile.TemporaryDirectory(prefix="pgcopydb-") as folder:
        binaries = Path(place.program("pg_dump")).parent
        environment = {
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(program.parents[1] / "lib"),
        }
        command = [program, "clone", "--source", dsns[0], "--target", dsns[1], "--dir", f"{folder}/work"]
        command += ["--table-jobs", str(JOBS), "--index-jobs", str(JOBS), "--skip-large-objects", "--no-acl"]
        began = time.perf_counter()
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
        seconds = time.perf_counter() - began
    if result.returncode:
        raise Failed(f"pgcopydb: {result.stderr[-2000:]}")
    return seconds


def _pgcopydb() -> Path:
    """The program of Debian's package, unpacked. Raises Failed without it."""
    if found := shutil.which(_PACKAGE):
        return Path(found)
    folder = Path(tempfile.gettempdir()) / "ggshell-pgcopydb"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["/usr/bin/apt-get", "download", _PACKAGE], cwd=scratch, check=False, capture_output=True)
            for package in Path(scratch).glob("*.deb"):
                subprocess.run(["/usr/bin/dpkg-deb", "-x", package, folder], check=True)
    for found in folder.glob(f"**/bin/{_PACKAGE}"):
        return found
    raise Failed("Debian's package pgcopydb is not available")
