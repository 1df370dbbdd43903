"""The heartbeat objects: created completely or not at all, their settings, and the effects of an incoming heartbeat."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from ggshell.connectors.heartbeat_tables import HeartbeatTableChanges, HeartbeatTableSettings
from ggshell.connectors.postgres import heartbeat, session, slot
from ggshell.errors import ConflictError, GgsError, NotFoundError
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, HeartbeatNames

NAMES = HeartbeatNames("gg admin")
ALL_OBJECTS = """SELECT relname FROM pg_class WHERE relnamespace = '"gg admin"'::regnamespace AND relkind IN ('r', 'p', 'v')
 UNION SELECT proname FROM pg_proc WHERE pronamespace = '"gg admin"'::regnamespace ORDER BY 1"""

LAG_COLUMNS = """LOCAL_DATABASE, CURRENT_LOCAL_TS, REMOTE_DATABASE, INCOMING_HEARTBEAT_AGE, INCOMING_PATH, INCOMING_LAG,
 OUTGOING_HEARTBEAT_AGE, OUTGOING_PATH, OUTGOING_LAG, REMOTE_EXTRACT_RESTART_CSN, REMOTE_DATABASE_DB_UNIQUE_NAME,
 REMOTE_EXTRACT_RESTART_CSN_TIME, REMOTE_DB_OLDEST_OPEN_TXN_AGE, LOCAL_REPLICAT_LWM_CSN"""
LAG_HISTORY_COLUMNS = """LOCAL_DATABASE, HEARTBEAT_RECEIVED_TS, REMOTE_DATABASE, DB_NAME, DB_UNIQUE_NAME,
 INCOMING_HEARTBEAT_AGE, INCOMING_PATH, INCOMING_LAG, OUTGOING_HEARTBEAT_AGE, OUTGOING_PATH, OUTGOING_LAG,
 REMOTE_EXTRACT_RESTART_CSN, REMOTE_EXTRACT_RESTART_CSN_TIME, REMOTE_DB_OLDEST_OPEN_TXN_AGE, LOCAL_REPLICAT_LWM_CSN,
 INCOMING_EXTRACT_LAG, INCOMING_ROUTINE_LAG, INCOMING_REPLICAT_READ_LAG, INCOMING_REPLICAT_LAG, OUTGOING_EXTRACT_LAG,
 OUTGOING_ROUTINE_LAG, OUTGOING_REPLICAT_READ_LAG, OUTGOING_REPLICAT_LAG"""

Connection = psycopg.Connection[Any]


def words(text: str) -> list[str]:
    return [word.strip().lower() for word in text.split(",")]


@pytest.fixture
def database(south: str) -> Iterator[Connection]:
    with session.connect(south) as connection:
        connection.execute('CREATE SCHEMA "gg admin"')
        yield connection


def rows(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    return connection.execute(statement).fetchall()


def columns(connection: Connection, table: str) -> list[str]:
    cursor = connection.execute(f'SELECT * FROM "gg admin".{table} WHERE false')
    return [column.name for column in cursor.description or ()]


def insert_incoming(connection: Connection, **values: object) -> None:
    """Insert a heartbeat as a Replicat does."""
    row = {"local_database": connection.info.dbname, "remote_database": "north", "incoming_replicat": "REP1", **values}
    connection.execute(
        f'INSERT INTO "gg admin".gg_heartbeat_history ({", ".join(row)}) VALUES ({", ".join(["%s"] * len(row))})',
        list(row.values()),
    )


def test_all_objects_are_created_with_documented_columns_and_reported_by_code(database: Connection) -> None:
    made = heartbeat.add(database, NAMES, HeartbeatTableSettings())
    assert columns(database, "gg_heartbeat") == list(HEARTBEAT_COLUMNS)
    assert columns(database, "gg_heartbeat_seed") == list(HEARTBEAT_COLUMNS)
    assert columns(database, "gg_heartbeat_history") == list(HISTORY_COLUMNS)
    assert columns(database, "gg_lag") == words(LAG_COLUMNS)
    assert columns(database, "gg_lag_history") == words(LAG_HISTORY_COLUMNS)
    assert {each.code for each in made} >= {f"OGG-140{n:02}" for n in (0, 1, 3, 4, 5, 16, 17, 18, 24, 32, 33)}
    seed = rows(database, 'SELECT local_database, heartbeat_timestamp IS NOT NULL FROM "gg admin".gg_heartbeat_seed')
    assert seed == [(database.info.dbname, True)]
    published = rows(
        database, f"SELECT tablename FROM pg_publication_tables WHERE pubname = '{slot.PUBLICATION}' ORDER BY 1"
    )
    assert published == [("gg_heartbeat",), ("gg_heartbeat_seed",)]


def test_a_second_add_is_refused_and_delete_leaves_nothing(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(partitioned=True))
    with pytest.raises(ConflictError, match="already exists"):
        heartbeat.add(database, NAMES, HeartbeatTableSettings())
    heartbeat.delete(database, NAMES)
    assert rows(database, ALL_OBJECTS) == []
    with pytest.raises(NotFoundError) as raised:
        heartbeat.delete(database, NAMES)
    assert raised.value.code == "OGG-10523"


def test_an_add_that_fails_midway_leaves_nothing(database: Connection) -> None:
    database.execute('CREATE VIEW "gg admin".gg_lag_history AS SELECT 1 AS taken')
    with pytest.raises(GgsError):
        heartbeat.add(database, NAMES, HeartbeatTableSettings())
    assert rows(database, ALL_OBJECTS) == [("gg_lag_history",)]


def test_without_the_schema_nothing_is_created(south: str) -> None:
    with session.connect(south) as connection, pytest.raises(NotFoundError) as raised:
        heartbeat.add(connection, NAMES, HeartbeatTableSettings())
    assert raised.value.code == "OGG-26006"


def test_settings_are_stored_changed_and_shown(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(Decimal("0.5"), 10, 2))
    assert heartbeat.info(database, NAMES).settings == HeartbeatTableSettings(Decimal("0.5"), 10, 2)
    heartbeat.alter(database, NAMES, HeartbeatTableChanges(Decimal(0), 5))
    assert heartbeat.info(database, NAMES).settings == HeartbeatTableSettings(Decimal(0), 5, 2)
    heartbeat.alter(database, NAMES, HeartbeatTableChanges(target_only=True))
    assert heartbeat.info(database, NAMES).settings.target_only
    heartbeat.alter(database, NAMES, HeartbeatTableChanges(target_only=False, frequency=Decimal(7)))
    assert heartbeat.info(database, NAMES).settings == HeartbeatTableSettings(Decimal(7), 5, 2)


def test_a_target_only_database_sends_no_heartbeats(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(target_only=True))
    assert [job.name for job in heartbeat.info(database, NAMES).jobs] == ["GG_PURGE_HEARTBEATS"]
    assert rows(database, "SELECT count(*) FROM pg_publication_tables") == [(0,)]


def test_jobs_run_only_when_they_are_due(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(Decimal(60)))
    ran, wait = heartbeat.run_jobs(database, NAMES)
    assert ran == 0
    assert wait is not None
    assert 59 < wait <= 60
    database.execute("""UPDATE "gg admin".gg_heartbeat_jobs SET next_run = next_run - interval '2 minutes'""")
    late = {job.name: job.late for job in heartbeat.info(database, NAMES).jobs}
    assert late["GG_UPDATE_HEARTBEATS"] > 59
    assert heartbeat.run_jobs(database, NAMES)[0] == 1
    assert {job.name: job.runs for job in heartbeat.info(database, NAMES).jobs}["GG_UPDATE_HEARTBEATS"] == 1


def test_old_history_is_purged_after_the_retention_time(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(retention_days=10))
    for days in (0, 9, 11, 400):
        insert_incoming(
            database, heartbeat_received_ts=rows(database, f"SELECT localtimestamp - interval '{days} days'")[0][0]
        )
    database.execute('CALL "gg admin".gg_purge_hb_tab()')
    kept = rows(database, 'SELECT heartbeat_received_ts FROM "gg admin".gg_heartbeat_history')
    assert len(kept) == 2


def test_a_partitioned_history_creates_days_in_advance_and_drops_old_days(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(partitioned=True, retention_days=1))
    insert_incoming(database)
    day = rows(database, 'SELECT tableoid::regclass::text FROM "gg admin".gg_heartbeat_history')
    today = rows(database, "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')")[0][0]
    assert day == [(f'"gg admin".gg_heartbeat_history_d{today}',)]
    database.execute(
        'CREATE TABLE "gg admin".gg_heartbeat_history_d20200101 PARTITION OF "gg admin".gg_heartbeat_history'
        " FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')"
    )
    database.execute('CALL "gg admin".gg_purge_hb_tab()')
    assert rows(database, """SELECT to_regclass('"gg admin".gg_heartbeat_history_d20200101')""") == [(None,)]


def test_a_path_has_one_row_and_each_heartbeat_a_row_in_the_history(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings())
    for second in (1, 2):
        insert_incoming(database, incoming_extract="EXT1", incoming_heartbeat_ts=f"2026-01-01 00:00:0{second}")
    insert_incoming(database, incoming_extract="EXT2", incoming_heartbeat_ts="2026-01-01 00:00:01")
    found = rows(
        database, 'SELECT incoming_extract, incoming_heartbeat_ts::text FROM "gg admin".gg_heartbeat ORDER BY 1'
    )
    assert found == [("EXT1", "2026-01-01 00:00:02"), ("EXT2", "2026-01-01 00:00:01")]
    assert rows(database, 'SELECT count(*) FROM "gg admin".gg_heartbeat_history') == [(3,)]


def test_a_heartbeat_with_a_return_path_replaces_one_without(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings())
    insert_incoming(database, incoming_extract="EXT1", incoming_heartbeat_ts="2026-01-01 00:00:01")
    insert_incoming(
        database, incoming_extract="EXT1", outgoing_replicat="REP9", incoming_heartbeat_ts="2026-01-01 00:00:02"
    )
    insert_incoming(database, incoming_extract="EXT1", incoming_heartbeat_ts="2026-01-01 00:00:03")
    found = rows(database, 'SELECT outgoing_replicat, incoming_heartbeat_ts::text FROM "gg admin".gg_heartbeat')
    assert found == [("REP9", "2026-01-01 00:00:03")]
    assert rows(database, 'SELECT count(*) FROM "gg admin".gg_heartbeat_history') == [(2,)]


def test_fifty_databases_with_ten_paths_each_have_five_hundred_rows(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings())
    for _ in range(2):
        database.execute(
            """INSERT INTO "gg admin".gg_heartbeat_history (remote_database, incoming_extract, incoming_replicat)
               SELECT 'db' || d, 'EXT' || p, 'REP' || p FROM generate_series(1, 50) d, generate_series(1, 10) p"""
        )
    assert rows(database, 'SELECT count(*) FROM "gg admin".gg_lag') == [(500,)]


def test_rows_that_name_a_process_can_be_deleted(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings())
    for number in (1, 2):
        insert_incoming(database, incoming_extract=f"FIN{number}", incoming_routing_path=f"P{number},Q")
    insert_incoming(database, incoming_extract="OTHER", incoming_routing_path="PX,Q")
    assert heartbeat.delete_entries(database, NAMES, "p2") == 1
    assert heartbeat.delete_entries(database, NAMES, "fin*") == 1
    assert rows(database, 'SELECT incoming_extract FROM "gg admin".gg_heartbeat') == [("OTHER",)]


def test_an_upgrade_adds_the_columns_of_a_newer_release_and_keeps_the_rows(database: Connection) -> None:
    heartbeat.add(database, NAMES, HeartbeatTableSettings(Decimal(5)))
    insert_incoming(database, incoming_extract="EXT1")
    database.execute('DROP VIEW "gg admin".gg_lag, "gg admin".gg_lag_history')
    database.execute('ALTER TABLE "gg admin".gg_heartbeat DROP COLUMN incoming_extract_restart_ts')
    database.execute('ALTER TABLE "gg admin".gg_heartbeat_history DROP COLUMN source_extract_restart_csn')
    made = heartbeat.upgrade(database, NAMES)
    assert [each.text.split()[2] for each in made if each.code == "OGG-14089"] == [
        "incoming_extract_restart_ts",
        "source_extract_restart_csn",
    ]
    insert_incoming(database, incoming_extract="EXT1")
    assert rows(database, 'SELECT count(*) FROM "gg admin".gg_lag') == [(1,)]
    assert heartbeat.info(database, NAMES).settings.frequency == 5
