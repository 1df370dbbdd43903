"""One transaction of very many rows, during the load: it arrives whole, and neither Extract nor Replicat keeps it in memory.

``--rounds 500`` are five million rows.
"""

from __future__ import annotations

import psycopg

from faultruns.arrival import require_arrival
from faultruns.chain import Chain
from faultruns.memory import require_at_most

ROWS = 10_000
"""Of a round."""
MOST_MEGABYTES = 512


def missing() -> str:
    """Every machine can."""
    return ""


def prepare(ground: Chain) -> None:
    """Nothing is needed."""


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """All rounds in one transaction; some of its rows go again. Raises Failed when it does not arrive, or takes too much."""
    with psycopg.connect(ground.servers.dsn("north")) as connection:
        for number in range(rounds):
            first = number * ROWS + 1
            connection.execute(
                "INSERT INTO a.bulk SELECT i, 'row ' || i FROM generate_series(%s::bigint, %s) i",
                [first, first + ROWS - 1],
            )
        connection.execute("DELETE FROM a.bulk WHERE line %% 1000 = %s", [seed % 1000])
    require_arrival(ground, rounds * ROWS)
    require_at_most(ground, MOST_MEGABYTES)
