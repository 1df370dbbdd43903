"""``apply``: what the kinds of Replicat are good for, and what exactly-once costs.

Parallel compared with classic on a target where the commit of each row takes 1 ms (a deferred trigger that sleeps, as a
distant or busy database would); the same without that, to show what parallelism costs where there is nothing to gain;
the checkpoint table compared with none; and COLMAP with two functions compared with no mapping.
"""

from __future__ import annotations

from collections.abc import Sequence

from benches.figures import Figure, alternate, more_is_better
from benches.ground import Ground, ground, wait_until

_CLIENT = """
SELECT extract(epoch FROM min(backend_start))::float8 FROM pg_stat_activity
 WHERE datname = 'south' AND usename = 'ggadmin' AND backend_type = 'client backend'
"""
_SLOW = (
    "CREATE FUNCTION bench.slow() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN PERFORM pg_sleep(0.001); RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON bench.rows DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION bench.slow()",
)
_MAP = "MAP bench.*, TARGET bench.*;"
_COLMAP = (
    "MAP bench.rows, TARGET bench.rows, COLMAP (USEDEFAULTS, note = @STRUP (note), customer = @COMPUTE (customer + 1));"
)
_FOUR = f"MAX_APPLY_PARALLELISM 4\n{_MAP}"


def run(rounds: int, quick: bool) -> list[Figure]:
    part = 10 if quick else 1
    return [
        _case(
            "4 appliers, 1 ms a commit",
            12_000 // part,
            rounds,
            ("PARALLEL", _FOUR),
            ("", _MAP),
            "classic Replicat",
            2.0,
            _SLOW,
        ),
        _case(
            "4 appliers, no delay", 100_000 // part, rounds, ("PARALLEL", _FOUR), ("", _MAP), "classic Replicat", 1.0
        ),
        _case(
            "with checkpoint table",
            100_000 // part,
            rounds,
            ("", _MAP),
            ("NODBCHECKPOINT", _MAP),
            "NODBCHECKPOINT",
            0.9,
        ),
        _case("COLMAP, one-row tx", 100_000 // part, rounds, ("", _COLMAP), ("", _MAP), "no COLMAP", 0.75),
        _case("COLMAP, 10,000-row tx", 100 // part, rounds, ("", _COLMAP), ("", _MAP), "no COLMAP", 0.75, size=10_000),
    ]


def _case(
    name: str,
    transactions: int,
    rounds: int,
    ours: tuple[str, str],
    peer: tuple[str, str],
    peer_name: str,
    goal: float | None,
    prepare: Sequence[str] = (),
    *,
    size: int = 1,
) -> Figure:
    """``ours``, ``peer``: what ADD REPLICAT says, and the file's lines."""
    with ground() as place:
        place.extract("ext", "./dirdat/ea")
        last = place.fill(transactions, size)
        place.obey("START EXTRACT ext")
        place.wait_for_slot("ggs_ext", place.end_of_log())
        place.obey("STOP EXTRACT ext")
        place.checkpoint_table()
        with place.connect("south") as connection:
            for statement in prepare:
                connection.execute(statement)
        for number in range(rounds):
            for side, (option, lines) in (("our", ours), ("pee", peer)):
                place.replicat(f"{side}{number}", "./dirdat/ea", lines, option)
        mine, theirs = alternate(
            rounds,
            lambda number: last / _seconds(place, f"our{number}", last),
            lambda number: last / _seconds(place, f"pee{number}", last),
        )
    return more_is_better("apply", name, "rows/s", mine, theirs, peer_name, goal)


def _seconds(place: Ground, group: str, last: int) -> float:
    """From the first login to the moment at which every row is there: rows of appliers do not come in order."""
    place.obey(f"START REPLICAT {group}")
    began = wait_until(f"{group} is logged in", lambda: place.one("south", _CLIENT), every=0.01)
    ended = place.wait_for_count("bench.rows", last)
    place.obey(f"STOP REPLICAT {group}")
    with place.connect("south") as connection:
        connection.execute("TRUNCATE bench.rows")
        connection.execute("CHECKPOINT")
    return ended - float(began)
