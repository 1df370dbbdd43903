"""``move``: the downtime of clients when a database is switched and switched back, at 500 commits a second."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

from benches.figures import Figure, less_is_better, more_is_better
from benches.ground import Failed, Ground, ggshell, ground
from benches.ledger import Clients
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home

CLIENTS, PAUSE = 10, 0.016
MOST_SECONDS = 2.0
ALIASES = ("source", "target")
"""Logins of superusers: those of the demo cannot create event triggers."""
INSERT = "INSERT INTO bench.rows SELECT nextval('bench.keys'), 1, 1, now(), %s"
ROWS = "SELECT note FROM bench.rows"
_CLOCK = threading.Event()


def run(rounds: int, quick: bool) -> list[Figure]:
    """Switch and return in each round; every row must be there once on both sides at the end."""
    with ground() as place:
        _fill(place, 2_000 if quick else 200_000)
        for step in ("prepare --from source --to target --schemas bench", "load", "follow", "verify"):
            _step(place.home, *step.split())
        clients = Clients((place.servers.dsn("north"), place.servers.dsn("south")), INSERT, count=CLIENTS, pause=PAUSE)
        try:
            _CLOCK.wait(1 if quick else 5)
            down, rate = _switched(place, clients, rounds)
        finally:
            clients.stop()
        _step(place.home, "verify")
        for name in ("north", "south"):
            faults = clients.faults(place.servers.dsn(name), ROWS)
            if any(faults.values()):
                raise Failed(f"{name}: {faults}")
    ours = [max(seconds) for seconds in zip(down["switch"], down["back"], strict=True)]
    return [
        more_is_better("move", "load during the move", "tx/s", [rate], [500.0], "the goal", 1.0),
        less_is_better("move", "downtime of clients", "s", ours, [MOST_SECONDS], "the limit", 1.0),
    ]


def _fill(place: Ground, rows: int) -> None:
    with place.connect("south") as target:
        target.execute("DROP SCHEMA bench CASCADE")
    place.fill(10, rows // 10)
    store = CredentialStore(Home(place.home))
    for alias, name in zip(ALIASES, ("north", "south"), strict=True):
        store.add(alias, place.servers.dsn(name), "")
    with place.connect("north") as source:
        source.execute(f"CREATE SEQUENCE bench.keys START {rows + 1}".encode())


def _switched(place: Ground, clients: Clients, rounds: int) -> tuple[dict[str, list[float]], float]:
    """Return the downtimes of each direction, and the rate of the clients in between."""
    down: dict[str, list[float]] = {"switch": [], "back": []}
    began = time.monotonic()
    rate = clients.rate(began - 1)
    for _ in range(rounds):
        for step, found in down.items():
            clients.forget_times()
            _CLOCK.wait(1)
            rate = min(rate, clients.rate(time.monotonic() - 1))
            _step(place.home, step)
            _CLOCK.wait(1)
            found.append(clients.downtime)
    return down, rate


def _step(home: Path, *words: str) -> None:
    """Run one step. Raises Failed with its output."""
    command = [ggshell(), "move", *words, "--home", str(home)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode != 0:
        raise Failed(f"ggshell move {words[0]} failed:\n{result.stdout}{result.stderr}")
