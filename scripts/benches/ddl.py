"""``ddl``: the time that capture adds to a DDL statement and to a row in the source, compared with the same statements
in a database without it. Both databases take turns statement by statement. The server does not sync its files: some
statements wait for the disk at their commit, with and without capture, and what that takes differs by more than capture
costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from statistics import median, quantiles

import psycopg

from benches.figures import Figure, less_is_better
from benches.ground import Ground, ground
from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.table_logging import PostgresTableLogging

LIMIT = 1.0
"""Milliseconds that capture may add to a statement."""
ROWS_LIMIT = 0.05
"""Milliseconds that capture may add to an INSERT: what two equal databases differ by."""
PLAIN = "plain"


def run(rounds: int, quick: bool) -> list[Figure]:
    tables, inserts = (10, 200) if quick else (60, 2000)
    with ground() as place:
        _make_plain(place)
        with session.connect(place.servers.dsn("north")) as superuser:
            PostgresTableLogging(superuser).add_schema("bench", all_columns=False)
        with place.connect("north") as with_capture, psycopg.connect(_plain(place), autocommit=True) as without:
            sides = (with_capture, without)
            for side in sides:
                side.execute("SET synchronous_commit = off; SET search_path = bench")
                side.execute("CREATE SCHEMA IF NOT EXISTS bench")
            _take_turns(sides, _statements(2))
            times = [_take_turns(sides, _statements(tables)) for _ in range(rounds)]
            added = [_added(each) for each in times]
            dearest = [_dearest(each) for each in times]
            for side in sides:
                side.execute("CREATE TABLE bench.single (id int PRIMARY KEY, note text)")
            rows = [_added(_take_turns(sides, _inserts(number * inserts, inserts))) for number in range(rounds)]
    return [
        less_is_better("ddl", "a statement, p50", "ms", [p50 for p50, _ in added], [LIMIT], "the limit", 1.0),
        less_is_better("ddl", "a statement, p95", "ms", [p95 for _, p95 in added], [LIMIT], "the limit", 1.0),
        less_is_better("ddl", "the slowest kind of statement, p50", "ms", dearest, [LIMIT], "the limit", 1.0),
        less_is_better("ddl", "an INSERT, p50", "ms", [p50 for p50, _ in rows], [ROWS_LIMIT], "the limit", 1.0),
    ]


def _make_plain(place: Ground) -> None:
    with session.connect(place.servers.dsn("north")) as superuser:
        superuser.execute("ALTER SYSTEM SET fsync = off")
        superuser.execute("SELECT pg_reload_conf()")
    with place.connect("north") as connection:
        connection.execute(f"CREATE DATABASE {PLAIN}")


def _plain(place: Ground) -> str:
    return psycopg.conninfo.make_conninfo(place.servers.dsn("north"), dbname=PLAIN)


def _statements(tables: int) -> Iterator[str]:
    """DDL statements of the usual kinds."""
    for _ in range(tables):
        yield "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, price numeric DEFAULT 0)"
        yield "ALTER TABLE items ADD COLUMN placed timestamptz"
        yield "ALTER TABLE items ADD COLUMN state int NOT NULL DEFAULT 1"
        yield "CREATE INDEX items_name ON items (name)"
        yield "COMMENT ON TABLE items IS 'what is sold'"
        yield "ALTER TABLE items ALTER COLUMN state TYPE bigint"
        yield "ALTER TABLE items ADD CONSTRAINT positive CHECK (price >= 0)"
        yield "CREATE VIEW cheap AS SELECT id FROM items WHERE price < 10"
        yield "GRANT SELECT ON items TO PUBLIC"
        yield "ALTER TABLE items RENAME COLUMN name TO title"
        yield "DROP VIEW cheap"
        yield "DROP TABLE items"


def _inserts(first: int, number: int) -> Iterator[str]:
    for value in range(first, first + number):
        yield f"INSERT INTO single VALUES ({value}, 'a row')"


def _take_turns(
    sides: tuple[psycopg.Connection, psycopg.Connection], statements: Iterator[str]
) -> tuple[list[float], list[float]]:
    """Run each statement on both sides, in random order; their times in milliseconds.

    The side that is first also flushes the log of the other side's last statements, so no statement may have a fixed order.
    """
    times: tuple[list[float], list[float]] = ([], [])
    dice = Random(19)
    for statement in statements:
        for side in dice.sample((0, 1), 2):
            began = time.perf_counter()
            sides[side].execute(statement)  # type: ignore[call-overload]
            times[side].append((time.perf_counter() - began) * 1000)
    return times


def _dearest(times: tuple[list[float], list[float]]) -> float:
    """The difference of the medians of the kind of statement that capture makes most expensive, in milliseconds."""
    kinds = len(list(_statements(1)))
    return max(median(times[0][kind::kinds]) - median(times[1][kind::kinds]) for kind in range(kinds))


def _added(times: tuple[list[float], list[float]]) -> tuple[float, float]:
    """The differences of the medians and of the 95th percentiles, in milliseconds."""
    ours, plain = (quantiles(side, n=20) for side in times)
    return max(0.001, ours[9] - plain[9]), max(0.001, ours[18] - plain[18])
