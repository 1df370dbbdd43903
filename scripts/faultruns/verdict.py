"""What the source holds and the target does not, and what the target holds more often than the source."""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

import psycopg

from faultruns.chain import Chain

ARRIVAL_SECONDS = 120.0
QUIET_SECONDS = 10.0
_END = -1


class Verdict(NamedTuple):
    """Rows lost and rows that came twice: lines of the ledger and of the large runs, and steps of the counters."""

    lost: int
    twice: int


def compare(source: str, target: str) -> Verdict:
    """Both tables as they are now."""
    with psycopg.connect(source) as north, psycopg.connect(target) as south:
        lines = [
            Counter(row[0] for row in side.execute(f"SELECT line FROM {schema}.ledger"))
            for side, schema in _sides(north, south)
        ]
        steps = [
            dict(side.execute(f"SELECT id, n FROM {schema}.counters").fetchall())
            for side, schema in _sides(north, south)
        ]
    behind = sum(max(0, n - steps[1].get(number, 0)) for number, n in steps[0].items())
    before = sum(max(0, n - steps[0].get(number, 0)) for number, n in steps[1].items())
    bulk = _bulk(source, target)
    return Verdict(
        (lines[0] - lines[1]).total() + behind + bulk.lost, (lines[1] - lines[0]).total() + before + bulk.twice
    )


def _bulk(source: str, target: str) -> Verdict:
    """The table of the large runs: counted and summed up where it lies; rows that differ count as lost and as there twice."""
    found = []
    for dsn, schema in ((source, "a"), (target, "b")):
        with psycopg.connect(dsn) as side:
            row = side.execute(
                f"SELECT count(*), sum(hashint8(line)::numeric * hashtext(note)) FROM {schema}.bulk"
            ).fetchone()
            found.append(row or (0, None))
    (here, sums), (there, others) = found
    differs = int(here == there and sums != others)
    return Verdict(max(0, here - there) + differs, max(0, there - here) + differs)


def _sides(north: psycopg.Connection, south: psycopg.Connection) -> tuple[tuple[psycopg.Connection, str], ...]:
    return (north, "a"), (south, "b")


def wait_for_verdict(ground: Chain) -> Verdict:
    """Wait until the last line has arrived, and nothing more comes; what is missing then is lost.

    Raises Failed when the last line does not come.
    """
    source, target = ground.servers.dsn("north"), ground.servers.dsn("south")
    with psycopg.connect(source, autocommit=True) as north:
        north.execute("INSERT INTO a.ledger VALUES (%s, now(), 'the end')", [_END])
    with psycopg.connect(target, autocommit=True) as south:
        query = "SELECT 1 FROM b.ledger WHERE line = %s"
        ground.until("the last line", lambda: south.execute(query, [_END]).fetchone(), seconds=ARRIVAL_SECONDS)
    found, changed = compare(source, target), time.monotonic()
    while found.lost and time.monotonic() - changed < QUIET_SECONDS:
        ground.wait(0.2)
        now = compare(source, target)
        found, changed = now, (time.monotonic() if now != found else changed)
    return found
