"""Very many transactions of one row, as fast as the source takes them: ``--rounds 1000`` are one million."""

from __future__ import annotations

import psycopg

from faultruns.arrival import require_arrival
from faultruns.chain import Chain

TRANSACTIONS = 1000
"""Of a round."""
MOST_MEGABYTES = 512

_EACH = """DO $$ BEGIN
  FOR i IN {first}..{last} LOOP
    INSERT INTO a.bulk VALUES (i, 'row ' || i);
    COMMIT;
  END LOOP;
END $$"""


def missing() -> str:
    """Every machine can."""
    return ""


def prepare(ground: Chain) -> None:
    """Nothing is needed."""


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """The server itself makes the transactions, one after the other. Raises Failed when they do not arrive."""
    with psycopg.connect(ground.servers.dsn("north"), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        for number in range(rounds):
            first = number * TRANSACTIONS + 1
            connection.execute(_EACH.format(first=first, last=first + TRANSACTIONS - 1))
    require_arrival(ground, rounds * TRANSACTIONS)
