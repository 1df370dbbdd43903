"""Very many transactions that are open at once and end in another order: ``--rounds 100`` are ten thousand.

They are prepared transactions, since a server cannot have so many sessions. Sessions whose rows alternate are open too.
"""

from __future__ import annotations

import random
from contextlib import ExitStack

import psycopg

from faultruns.arrival import require_arrival
from faultruns.chain import Chain

TRANSACTIONS = 100
"""Of a round."""
SESSIONS = 20
MOST_MEGABYTES = 512
_BESIDE = 1_000_000_000


def missing() -> str:
    """Every machine can."""
    return ""


def prepare(ground: Chain) -> None:
    """The source takes prepared transactions, and streams open ones early."""
    server = dict(ground.servers.both())["north"]
    with psycopg.connect(ground.servers.dsn("north"), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET max_prepared_transactions = 10000")
        connection.execute("ALTER SYSTEM SET logical_decoding_work_mem = '64kB'")
    server.stop("fast")
    ground.servers.start()


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """All are opened, then ended in an order of the seed, one in ten by a rollback. Raises Failed when they do not arrive."""
    chance = random.Random(f"interleaved {seed}")
    dsn = ground.servers.dsn("north")
    count = rounds * TRANSACTIONS
    with ExitStack() as stack:
        beside = [stack.enter_context(psycopg.connect(dsn)) for _ in range(SESSIONS)]
        with psycopg.connect(dsn, autocommit=True) as connection:
            for number in range(count):
                connection.execute(
                    f"BEGIN; INSERT INTO a.bulk SELECT {number} * 10 + i, 'row' FROM generate_series(0, 4) i;"
                    f" PREPARE TRANSACTION 'open {number}'"
                )
                if number % 10 == 0:
                    session = number // 10 % SESSIONS
                    beside[session].execute(
                        "INSERT INTO a.bulk SELECT %s + i, repeat('x', 200) FROM generate_series(0, 99) i",
                        [_BESIDE + number * 100],
                    )
            for number in chance.sample(range(count), count):
                connection.execute(f"{'ROLLBACK' if chance.random() < 0.1 else 'COMMIT'} PREPARED 'open {number}'")
        for session in chance.sample(beside, SESSIONS):
            session.commit()
    require_arrival(ground, count * 15)
