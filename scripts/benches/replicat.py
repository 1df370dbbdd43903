"""``replicat``: rows a second applied, compared with PostgreSQL's own subscription applying the same load.

Ours reads a finished trail; the peer reads a slot made before the rows. Both are timed from the start of their session
on the target to the moment at which the last row is visible there.
"""

from __future__ import annotations

from benches.figures import Figure, alternate, more_is_better
from benches.ground import Ground, ground, wait_until

_APPLY_WORKER = """
SELECT extract(epoch FROM min(backend_start))::float8 FROM pg_stat_activity
 WHERE datname = 'south' AND (backend_type LIKE 'logical replication%%' AND backend_type NOT LIKE '%%launcher')
"""
_CLIENT = """
SELECT extract(epoch FROM min(backend_start))::float8 FROM pg_stat_activity
 WHERE datname = 'south' AND usename = 'ggadmin' AND backend_type = 'client backend'
"""


def run(rounds: int, quick: bool) -> list[Figure]:
    part = 10 if quick else 1
    cases = (
        ("one-row transactions", 100_000 // part, 1, 1.3),
        ("10,000-row transactions", 100 // part, 10_000, 1.8),
    )
    return [_case(name, transactions, size, goal, rounds) for name, transactions, size, goal in cases]


def _case(name: str, transactions: int, size: int, goal: float, rounds: int) -> Figure:
    with ground() as place:
        place.extract("ext", "./dirdat/ea")
        for number in range(rounds):
            place.one("north", "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (f"peer{number}",))
        last = place.fill(transactions, size)
        place.obey("START EXTRACT ext")
        place.wait_for_slot("ggs_ext", place.end_of_log())
        place.obey("STOP EXTRACT ext")
        place.checkpoint_table()
        for number in range(rounds):
            place.replicat(f"rep{number}", "./dirdat/ea")
        ours, peer = alternate(
            rounds,
            lambda number: last / _ours(place, f"rep{number}", last),
            lambda number: last / _peer(place, number, last),
        )
    return more_is_better("replicat", name, "rows/s", ours, peer, "PostgreSQL's subscription", goal)


def _ours(place: Ground, group: str, last: int) -> float:
    place.obey(f"START REPLICAT {group}")
    began = wait_until(f"{group} is logged in", lambda: place.one("south", _CLIENT), every=0.01)
    ended = place.wait_for_row("bench.rows", last)
    place.obey(f"STOP REPLICAT {group}")
    _clear(place, last)
    return ended - float(began)


def _peer(place: Ground, number: int, last: int) -> float:
    with place.connect("south") as connection:
        source = place.servers.dsn("north").replace("'", "''")
        connection.execute(
            f"CREATE SUBSCRIPTION peer{number} CONNECTION '{source}' PUBLICATION ggshell WITH (copy_data = false,"
            f" create_slot = false, slot_name = peer{number}, enabled = true, streaming = 'on')"
        )
        began = wait_until("the subscription works", lambda: place.one("south", _APPLY_WORKER), every=0.01)
        ended = place.wait_for_row("bench.rows", last)
        connection.execute(f"DROP SUBSCRIPTION peer{number}")
    _clear(place, last)
    return ended - float(began)


def _clear(place: Ground, last: int) -> None:
    """Check that all came, then empty the table for the next side."""
    count = place.one("south", "SELECT count(*) FROM bench.rows")
    if count != last:
        raise RuntimeError(f"{count} rows arrived instead of {last}")
    with place.connect("south") as connection:
        connection.execute("TRUNCATE bench.rows")
        connection.execute("CHECKPOINT")
