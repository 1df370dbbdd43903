"""``latency``: from a commit's return at the source to its row's visibility at the target, at 200 transactions a second.

Three ways, one after the other in each round: ours (Extract, trail, Replicat), a bare loop of two processes (``bare_loop``)
and PostgreSQL's own subscription, which has no durable queue in between.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.figures import Figure, less_is_better, percentile
from benches.ground import Ground, ground, wait_until

RATE = 200
WARM_UP = 100
GOALS = 0.71, 0.67
"""Of the median and of the 99th percentile: 1.4 and 1.5 times the time of a bare loop."""
_IDS = iter(range(10**9, sys.maxsize))


def run(rounds: int, quick: bool) -> list[Figure]:
    count = RATE * (3 if quick else 10)
    ways = {"ours": _ours, "bare": _bare_loop, "native": _subscription}
    found: dict[str, list[list[float]]] = {name: [] for name in ways}
    with ground() as place:
        place.extract("ext", "./dirdat/ea")
        place.checkpoint_table()
        place.replicat("rep", "./dirdat/ea")
        for number in range(rounds):
            names = list(ways)
            for name in names[number % 3 :] + names[: number % 3]:
                with ways[name](place):
                    found[name].append(measure(place, count))
                with place.connect("south") as connection:  # the ways not in use have not applied these rows
                    connection.execute("TRUNCATE bench.rows")
    return [*_figures(found, "p50", 0.5, GOALS[0]), *_figures(found, "p99", 0.99, GOALS[1])]


def _figures(found: dict[str, list[list[float]]], case: str, share: float, goal: float) -> Iterator[Figure]:
    by_round = {name: [1000 * percentile(values, share) for values in rounds] for name, rounds in found.items()}
    ours, bare, native = by_round["ours"], by_round["bare"], by_round["native"]
    yield less_is_better("latency", case, "ms", ours, bare, "a bare loop with fdatasync", goal)
    yield less_is_better("latency", case, "ms", ours, native, "PostgreSQL's subscription", None)


def measure(place: Ground, count: int) -> list[float]:
    """Commit a row at every beat and ask the target until it is there; seconds each."""
    taken: list[float] = []
    pause = threading.Event()
    with place.connect("north") as source, place.connect("south") as target:
        due = time.perf_counter()
        for number in range(WARM_UP + count):
            key = next(_IDS)
            source.execute("INSERT INTO bench.rows VALUES (%s, 1, 1.25, now(), 'a row')", (key,), prepare=True)
            committed = time.perf_counter()
            while not target.execute("SELECT 1 FROM bench.rows WHERE id = %s", (key,), prepare=True).fetchone():
                if time.perf_counter() - committed > 30:
                    raise RuntimeError(f"row {key} did not arrive within 30 s")
            if number >= WARM_UP:
                taken.append(time.perf_counter() - committed)
            due = max(due + 1 / RATE, time.perf_counter() - 1 / RATE)
            pause.wait(max(0.0, due - time.perf_counter()))
    return taken


@contextmanager
def _ours(place: Ground) -> Iterator[None]:
    # The rows that the other ways carried are applied first, during the warm-up: their numbers are not used again.
    place.obey("START EXTRACT ext", "START REPLICAT rep")
    try:
        yield
    finally:
        place.obey("STOP EXTRACT ext", "STOP REPLICAT rep")


@contextmanager
def _bare_loop(place: Ground) -> Iterator[None]:
    program = Path(__file__).with_name("bare_loop.py")
    place.one("north", "SELECT pg_create_logical_replication_slot('bare', 'pgoutput')")
    command = [
        sys.executable,
        program,
        place.servers.dsn("north"),
        place.servers.dsn("south"),
        place.home / "bare.queue",
    ]
    process = subprocess.Popen([str(word) for word in command])
    try:
        query = "SELECT active FROM pg_replication_slots WHERE slot_name = 'bare'"
        wait_until("the bare loop reads", lambda: place.one("north", query))
        yield
    finally:
        process.terminate()
        process.wait()
        _drop_slot(place, "bare")


@contextmanager
def _subscription(place: Ground) -> Iterator[None]:
    place.one("north", "SELECT pg_create_logical_replication_slot('native', 'pgoutput')")
    with place.connect("south") as connection:
        source = place.servers.dsn("north").replace("'", "''")
        connection.execute(
            f"CREATE SUBSCRIPTION native CONNECTION '{source}' PUBLICATION ggshell"
            " WITH (copy_data = false, create_slot = false, slot_name = native)"
        )
        try:
            yield
        finally:
            connection.execute("ALTER SUBSCRIPTION native DISABLE")
            connection.execute("ALTER SUBSCRIPTION native SET (slot_name = NONE)")
            connection.execute("DROP SUBSCRIPTION native")
            _drop_slot(place, "native")


def _drop_slot(place: Ground, slot: str) -> None:
    query = "SELECT true FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
    wait_until(f"slot {slot} is free", lambda: place.one("north", query, (slot,)))
    place.one("north", "SELECT pg_drop_replication_slot(%s)", (slot,))
