"""Lag over time, computed in the database: the same as computed from the single heartbeats."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ggshell.clock import to_datetime
from ggshell.connectors.heartbeat_tables import HeartbeatTableSettings
from ggshell.connectors.postgres import heartbeat, session
from ggshell.connectors.postgres.heartbeat_tables import PostgresHeartbeatTables
from ggshell.durations import PERIODS
from ggshell.monitoring.heartbeat_lag import parts_between, path_text
from ggshell.monitoring.spreads import Arrival, objectives, spreads
from ggshell.pipeline.heartbeat.names import HeartbeatNames

NAMES = HeartbeatNames("gg")
SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
Times = tuple[int | None, int | None, int | None, int | None, int]


@pytest.fixture
def database(south: str) -> Iterator[psycopg.Connection[Any]]:
    with session.connect(south) as connection:
        connection.execute("CREATE SCHEMA gg")
        heartbeat.add(connection, NAMES, HeartbeatTableSettings(target_only=True))
        # Incoming heartbeats are inserted here as they are, including those that no Replicat would apply.
        connection.execute("ALTER TABLE gg.gg_heartbeat_history DISABLE TRIGGER ALL")
        yield connection


def insert_heartbeats(connection: psycopg.Connection[Any], count: int) -> list[Arrival]:
    """Heartbeats over three paths and some hours; some of them without a hop or without their creation time."""
    rng, found, rows = random.Random(7), list[Arrival](), []
    for number in range(count):
        path = rng.choice(
            [("north", "EXT1", None, "REP1"), ("north", "EXT1", "DP1", "REP1"), ("East", None, None, "R")]
        )
        moment = BEGIN + number * 20 * SECOND
        steps = [moment]
        for _ in range(4):
            steps.append(steps[-1] + rng.choice([0, rng.randrange(3 * SECOND), -5000]))
        times = [step if rng.random() < 0.9 else None for step in steps[:-1]]
        rows.append(
            (*path, *(None if each is None else to_datetime(each).replace(tzinfo=None) for each in [*times, steps[-1]]))
        )
        found.append(Arrival(path[0], path_text(*path[1:]), steps[-1], parts_between((*times, steps[-1]))))
    columns = "remote_database, incoming_extract, incoming_routing_path, incoming_replicat, incoming_heartbeat_ts,"
    columns += " incoming_extract_ts, incoming_routing_ts, incoming_replicat_ts, heartbeat_received_ts"
    marks = ", ".join(["%s"] * 9)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO gg.gg_heartbeat_history (local_database, {columns}) VALUES ('south', {marks})", rows
        )
    return found


def test_percentiles_and_service_levels_equal_those_of_the_single_heartbeats(database: psycopg.Connection[Any]) -> None:
    arrivals = insert_heartbeats(database, 2000)
    tables = PostgresHeartbeatTables(database, NAMES)
    since = BEGIN + 3600 * SECOND
    wanted = [each for each in arrivals if each.received >= since]
    for period in PERIODS:
        in_database, from_heartbeats = (
            tables.spreads(period, since),
            spreads(wanted, period),
        )
        assert [each[:5] for each in in_database] == [each[:5] for each in sorted(from_heartbeats, key=_order)]
        for one, other in zip(in_database, sorted(from_heartbeats, key=_order), strict=True):
            assert one[5:] == pytest.approx(other[5:])
    found = tables.objectives((0.95, 3.0), since)
    assert found == objectives(wanted, 0.95, 3.0)
    (east,) = tables.objectives((0.95, 3.0), 0, "EAST")
    assert east.remote == "East"


def _order(each: Any) -> tuple[int, str, str, int]:
    return (each.begin, each.remote, each.path, ("extract", "routing", "read", "apply", "total").index(each.hop))


def test_the_history_is_returned_as_csv_that_distinguishes_null_from_empty(database: psycopg.Connection[Any]) -> None:
    database.execute(
        "INSERT INTO gg.gg_heartbeat_history (remote_database, incoming_extract, heartbeat_received_ts)"
        " VALUES ('', NULL, '2026-01-02 03:04:05.000006')"
    )
    columns = ("remote_database", "incoming_extract", "heartbeat_received_ts")
    found = b"".join(PostgresHeartbeatTables(database, NAMES).history(columns, 0))
    assert found == b'"",,2026-01-02 03:04:05.000006\n'


def test_received_heartbeats_are_read_from_the_newest_in_parts_and_by_process(
    database: psycopg.Connection[Any],
) -> None:
    arrivals = insert_heartbeats(database, 50)
    tables = PostgresHeartbeatTables(database, NAMES)
    newest = sorted(arrivals, key=lambda each: each.received, reverse=True)
    found = tables.received(10, 5)
    assert [(each.received, each.incoming.parts) for each in found] == [
        (each.received, each.parts) for each in newest[5:15]
    ]
    routed = [each.received for each in newest if "DP1" in each.path]
    assert [each.received for each in tables.received(100, 0, "dp1")] == routed
    assert tables.received(100, 0, "EXT9") == []
