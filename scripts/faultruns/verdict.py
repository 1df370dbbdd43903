"""What the source holds and the target does not, and what the target holds more often than the source."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

from faultruns.chain import Chain
from faultruns.sides import Session, Side

ARRIVAL_SECONDS = 120.0
QUIET_SECONDS = 10.0
_END = -1


class Verdict(NamedTuple):
    """Rows lost and rows that came twice: lines of the ledger and of the large runs, and steps of the counters."""

    lost: int
    twice: int


def compare(source: Side, target: Side) -> Verdict:
    """All tables as they are now."""
    with source.session() as north, target.session() as south:
        sides = (north, source.schema), (south, target.schema)
        lines = [Counter(row[0] for row in side.execute(f"SELECT line FROM {schema}.ledger")) for side, schema in sides]
        steps = [dict(side.execute(f"SELECT id, n FROM {schema}.counters")) for side, schema in sides]
        bulk = [_bulk(side, schema) for side, schema in sides]
    behind = sum(max(0, n - steps[1].get(number, 0)) for number, n in steps[0].items())
    before = sum(max(0, n - steps[0].get(number, 0)) for number, n in steps[1].items())
    (here, sums), (there, others) = bulk
    differs = int(here == there and sums != others)
    return Verdict(
        (lines[0] - lines[1]).total() + behind + max(0, here - there) + differs,
        (lines[1] - lines[0]).total() + before + max(0, there - here) + differs,
    )


def _bulk(side: Session, schema: str) -> tuple[int, Any]:
    """The rows of the large runs, which only PostgreSQL has: their number and sum."""
    ((count,),) = side.execute(f"SELECT count(*) FROM {schema}.bulk")
    if not count:
        return 0, None
    return count, side.execute(f"SELECT sum(hashint8(line)::numeric * hashtext(note)) FROM {schema}.bulk")[0][0]


def wait_for_verdict(ground: Chain) -> Verdict:
    """Wait until the last line has arrived, and nothing more comes; what is missing then is lost.

    Raises Failed when the last line does not come.
    """
    source, target = ground.sides["north"], ground.sides["south"]
    with source.session() as north:
        north.execute(f"INSERT INTO {source.schema}.ledger VALUES (%s, now(), 'the end')", [_END])
        north.commit()
    with target.session() as south:

        def arrived() -> bool:
            found = south.execute(f"SELECT 1 FROM {target.schema}.ledger WHERE line = %s", [_END])
            south.commit()
            return bool(found)

        ground.until("the last line", arrived, seconds=ARRIVAL_SECONDS)
    found, changed = compare(source, target), time.monotonic()
    while found.lost and time.monotonic() - changed < QUIET_SECONDS:
        ground.wait(0.2)
        now = compare(source, target)
        found, changed = now, (time.monotonic() if now != found else changed)
    return found
