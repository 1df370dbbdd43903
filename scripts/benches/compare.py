"""``compare``: COMPARE of two equal tables, compared with a sum of row hashes by one query in each database
at the same time."""

from __future__ import annotations

import subprocess
import threading
import time

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed, Ground, ggshell, ground

ROWS, QUICK_ROWS = 2_000_000, 100_000
GOAL = 0.67
"""At most 1.5 times the time of the databases' own sums."""
_OWN_SUM = "SELECT sum(hashtextextended(r::text, 0))::text FROM bench.rows r"


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = QUICK_ROWS if quick else ROWS
    with ground() as place:
        for name in ("north", "south"):
            with place.connect(name) as connection:
                connection.execute(
                    "INSERT INTO bench.rows SELECT n, mod(n, 1000), n * 1.25, '2026-01-01', repeat('x', 64)"
                    " FROM generate_series(1, %s::bigint) n",
                    [rows],
                )
                connection.execute("VACUUM ANALYZE bench.rows")
        ours, peer = alternate(rounds, lambda _: _compared(place, rows), lambda _: _own_sums(place))
    return [less_is_better("compare", f"{rows:,} equal rows", "s", ours, peer, "own sums of row hashes", GOAL)]


def _compared(place: Ground, rows: int) -> float:
    """The seconds of the statement as a user runs it, with the start of ggshell."""
    statement = "COMPARE north TO south, TABLE bench.rows"
    began = time.perf_counter()
    done = subprocess.run(
        [ggshell(), "--home", str(place.home), "-c", statement],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    taken = time.perf_counter() - began
    if done.returncode or f"{rows}  equal" not in done.stdout:
        raise Failed(f"{statement}:\n{done.stdout}{done.stderr}")
    return taken


def _own_sums(place: Ground) -> float:
    sums: list[str] = []
    queries = [
        threading.Thread(target=lambda name=name: sums.append(place.one(name, _OWN_SUM))) for name in ("north", "south")
    ]
    began = time.perf_counter()
    for query in queries:
        query.start()
    for query in queries:
        query.join()
    taken = time.perf_counter() - began
    if len(sums) != 2 or sums[0] != sums[1]:
        raise Failed(f"the tables are not equal: {sums}")
    return taken
