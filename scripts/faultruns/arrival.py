"""Waiting for very many rows."""

from __future__ import annotations

import psycopg

from faultruns.chain import Chain

LEAST_SECONDS = 120.0
SLOWEST = 2_000
"""Rows a second, on a machine that does much else."""


def require_arrival(ground: Chain, rows: int) -> None:
    """Wait until a.bulk is in the target. Raises Failed when it does not come, or a process has ended."""
    with (
        psycopg.connect(ground.servers.dsn("north"), autocommit=True) as north,
        psycopg.connect(ground.servers.dsn("south"), autocommit=True) as south,
    ):
        wanted = north.execute("SELECT count(*) FROM a.bulk").fetchone()

        def arrived() -> bool:
            ground.require_alive()
            ground.wait(0.2)  # the counting must not be what takes the time
            return south.execute("SELECT count(*) FROM b.bulk").fetchone() == wanted

        ground.until(f"{rows} rows arrive", arrived, seconds=LEAST_SECONDS + rows / SLOWEST)
