"""The heartbeat objects of MariaDB: commands, the trigger that receives heartbeats, jobs, and what lags are read from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal

import pytest
from cli.shell import Shell
from mariadb_servers import execute, schema_of

from ggshell.connectors.heartbeat_tables import HeartbeatTableChanges, HeartbeatTableSettings
from ggshell.connectors.mysql.heartbeat_tables import MysqlHeartbeats, MysqlHeartbeatTables
from ggshell.connectors.mysql.session import connect
from ggshell.errors import ConflictError, NotFoundError
from ggshell.pipeline.heartbeat.names import HeartbeatNames

BEAT = "INSERT INTO gg_heartbeat_history ({}) VALUES ({})"
INCOMING = {
    "remote_database": "'north'", "incoming_extract": "'EXT1'", "incoming_replicat": "'REP1'",
    "incoming_heartbeat_ts": "UTC_TIMESTAMP(6) - INTERVAL 3 SECOND",
    "incoming_extract_ts": "UTC_TIMESTAMP(6) - INTERVAL 2 SECOND",
    "incoming_replicat_ts": "UTC_TIMESTAMP(6) - INTERVAL 1 SECOND",
}  # fmt: skip
OUTGOING = {
    "outgoing_extract": "'EXT2'", "outgoing_replicat": "'REP2'",
    "outgoing_heartbeat_ts": "UTC_TIMESTAMP(6) - INTERVAL 5 SECOND",
    "outgoing_replicat_ts": "UTC_TIMESTAMP(6) - INTERVAL 4 SECOND",
}  # fmt: skip


@pytest.fixture
def tables(mariadb: str) -> Iterator[MysqlHeartbeatTables]:
    with closing(connect(mariadb)) as connection:
        yield MysqlHeartbeatTables(connection, HeartbeatNames(schema_of(mariadb)), "shop")


def _receive(login: str, columns: dict[str, str]) -> None:
    execute(login, BEAT.format(", ".join(columns), ", ".join(columns.values())))


def test_objects_are_created_changed_and_dropped(tables: MysqlHeartbeatTables, mariadb: str) -> None:
    made = tables.add(HeartbeatTableSettings(frequency=Decimal("0.5"), retention_days=3))
    assert {"OGG-14001", "OGG-14000", "OGG-14016", "OGG-14018", "OGG-14005", "OGG-14023"} <= {
        each.code for each in made
    }
    with pytest.raises(ConflictError, match="already exists"):
        tables.add(HeartbeatTableSettings())
    assert tables.state().settings == HeartbeatTableSettings(Decimal("0.5"), 3, 1)
    tables.alter(HeartbeatTableChanges(frequency=Decimal(30), retention_days=7, purge_days=2))
    assert tables.state().settings == HeartbeatTableSettings(Decimal(30), 7, 2)
    tables.alter(HeartbeatTableChanges(target_only=True))
    assert tables.state().settings.target_only
    execute(mariadb, "ALTER TABLE gg_heartbeat DROP COLUMN incoming_extract_restart_ts")
    assert "OGG-14089" in {each.code for each in tables.upgrade()}
    tables.delete()
    assert execute(mariadb, "SHOW TABLES") == []
    with pytest.raises(NotFoundError):
        tables.state()


def test_nothing_is_left_if_an_object_cannot_be_created(tables: MysqlHeartbeatTables, mariadb: str) -> None:
    execute(mariadb, "CREATE TABLE gg_heartbeat_jobs (x int)")
    with pytest.raises(Exception, match="already exists"):
        tables.add(HeartbeatTableSettings())
    assert not [row for row in execute(mariadb, "SHOW TABLES") if row != ("gg_heartbeat_jobs",)]


def test_a_received_heartbeat_gives_the_lag_of_its_path(tables: MysqlHeartbeatTables, mariadb: str) -> None:
    tables.add(HeartbeatTableSettings(target_only=True))
    _receive(mariadb, INCOMING)
    _receive(mariadb, INCOMING)
    (lag,) = tables.lags()
    assert (lag.beat.local_database, lag.beat.remote_database) == ("shop", "north")
    assert lag.incoming.parts.total == pytest.approx(3, abs=0.5)
    _receive(mariadb, {**INCOMING, **OUTGOING})
    (lag,) = tables.lags("NORTH")
    assert lag.outgoing.parts.total == pytest.approx(1, abs=0.1)
    _receive(mariadb, INCOMING)  # updates the row with the outgoing path, and does not count twice
    assert len(tables.lags()) == 1
    assert len(tables.received(10, 0)) == 3
    assert len(tables.received(10, 0, "rep2")) == 1
    (spread,) = [each for each in tables.spreads("DAY", 0) if each.hop == "total"]
    assert (spread.beats, spread.path) == (3, "==> EXT1 ==> REP1 ==>")
    (objective,) = tables.objectives((0.5, 10.0), 0)
    assert (objective.beats, objective.within) == (3, 3)
    ((incoming, outgoing),) = tables.least_lags(0).values()
    assert incoming == pytest.approx(3, abs=0.5)
    assert outgoing == pytest.approx(1, abs=0.1)
    assert len(b"".join(tables.history(["remote_database", "outgoing_extract"], 0)).splitlines()) == 3
    ((shown, late),) = execute(mariadb, "SELECT incoming_path, incoming_lag FROM gg_lag")
    assert shown == "==> EXT1 ==> REP1 ==>"
    assert float(late) == pytest.approx(2, abs=0.5)  # the last one is not in the history: up to its Replicat
    assert execute(mariadb, "SELECT COUNT(*), COUNT(outgoing_replicat_read_lag) FROM gg_lag_history") == [(3, 0)]
    assert tables.delete_entries("REP*") == 1


def test_jobs_that_are_due_send_a_heartbeat_and_purge_the_history(tables: MysqlHeartbeatTables, mariadb: str) -> None:
    tables.add(HeartbeatTableSettings(frequency=Decimal(1), retention_days=1))
    _receive(mariadb, {**INCOMING, "heartbeat_received_ts": "UTC_TIMESTAMP(6) - INTERVAL 2 DAY"})
    _receive(mariadb, INCOMING)
    ((first,),) = execute(mariadb, "SELECT heartbeat_timestamp FROM gg_heartbeat_seed WHERE local_database = 'shop'")
    execute(mariadb, "UPDATE gg_heartbeat_jobs SET next_run = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
    jobs = MysqlHeartbeats(mariadb, tables.names)
    try:
        left = jobs.run()
        assert left is not None
        assert 0 <= left <= 1
        assert jobs.lags()[1] == 1.0
    finally:
        jobs.close()
    schema = schema_of(mariadb)
    ((second,),) = execute(
        mariadb, f"SELECT heartbeat_timestamp FROM gg_heartbeat_seed WHERE local_database = '{schema}'"
    )
    assert second > first
    assert second.microsecond or first.microsecond
    assert execute(mariadb, "SELECT COUNT(*) FROM gg_heartbeat_history") == [(1,)]
    assert {job.runs for job in tables.state().jobs} == {1}


def test_the_statements_work_with_a_login_to_mariadb(shell: Shell, mariadb: str) -> None:
    shell.home.ensure()
    (shell.home.root / "GLOBALS").write_text(f"GGSCHEMA {schema_of(mariadb)}\n")
    answer = shell.batch(
        f"DBLOGIN SOURCEDB {mariadb}", "ADD HEARTBEATTABLE, FREQUENCY 5", "INFO HEARTBEATTABLE", "LAG HEARTBEAT",
        "LAG HEARTBEAT HISTORY", "ALTER HEARTBEATTABLE, RETENTION_TIME 3", "UPGRADE HEARTBEATTABLE",
        f"ADD CHECKPOINTTABLE {schema_of(mariadb)}.checks", f"INFO CHECKPOINTTABLE {schema_of(mariadb)}.checks",
        f"CLEANUP CHECKPOINTTABLE {schema_of(mariadb)}.checks", f"UPGRADE CHECKPOINTTABLE {schema_of(mariadb)}.checks",
        f"DELETE CHECKPOINTTABLE {schema_of(mariadb)}.checks", "DELETE HEARTBEATTABLE",
    )  # fmt: skip
    assert answer.code == 0, answer.out + answer.err
    assert "every 5 seconds" in answer.out
    assert execute(mariadb, "SHOW TABLES") == []
