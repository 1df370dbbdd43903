"""``values``: one large value from the commit in the source to the target, compared with psql copying the row
between the servers."""

from __future__ import annotations

import subprocess
import time

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Ground, ground

MEGABYTES, QUICK_MEGABYTES = (10, 40, 120, 200), (1, 10)
GOAL = 0.33
"""At most three times the time of a copy."""
_TABLE = """
SET ROLE ggadmin;
CREATE TABLE bench.large (id int PRIMARY KEY, value text);
ALTER TABLE bench.large ALTER value SET STORAGE EXTERNAL;
CREATE TABLE bench.copied (LIKE bench.large);
RESET ROLE"""


def run(rounds: int, quick: bool) -> list[Figure]:
    found: list[Figure] = []
    with ground() as place:
        for name in ("north", "south"):
            with place.connect(name) as connection:
                connection.execute(_TABLE)
        place.extract("ext", "./dirdat/ea")
        place.checkpoint_table()
        place.replicat("rep", "./dirdat/ea", "MAP bench.large, TARGET bench.large;")
        place.obey("START EXTRACT ext", "START REPLICAT rep")
        for size, megabytes in enumerate(QUICK_MEGABYTES if quick else MEGABYTES):
            first = size * rounds
            for number in range(first, first + rounds):
                _insert(place, 1_000_000 + number, megabytes, "copied")
            ours, peer = alternate(
                rounds,
                lambda number, first=first, megabytes=megabytes: _replicated(place, first + number, megabytes),
                lambda number, first=first: _copied_by_psql(place, 1_000_000 + first + number),
            )
            found.append(less_is_better("values", f"{megabytes} MB", "s", ours, peer, "psql | psql", GOAL))
    return found


def _insert(place: Ground, key: int, megabytes: int, table: str) -> None:
    with place.connect("north") as source:
        source.execute(
            f"INSERT INTO bench.{table} VALUES (%s, repeat('abcdefghij', %s))".encode(), (key, megabytes * 100_000)
        )


def _replicated(place: Ground, key: int, megabytes: int) -> float:
    """The seconds from the commit until the row is visible in the target."""
    _insert(place, key, megabytes, "large")
    began = time.time()
    return place.wait_for_row("bench.large", key) - began


def _copied_by_psql(place: Ground, key: int) -> float:
    ends = [(place.program("psql"), "-X", "-q", "-d", place.servers.dsn(name), "-c") for name in ("north", "south")]
    query = f"COPY (SELECT * FROM bench.copied WHERE id = {key}) TO STDOUT"
    began = time.perf_counter()
    with subprocess.Popen([*ends[0], query], stdout=subprocess.PIPE) as reader:
        subprocess.run([*ends[1], "COPY bench.copied FROM STDIN"], stdin=reader.stdout, check=True)
    return time.perf_counter() - began
