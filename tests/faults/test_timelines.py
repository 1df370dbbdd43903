"""A source on a new timeline, restored, or replaced: accepted only if no change can be missing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, Pipeline
from processes import until

from ggshell.clock import SystemClock
from ggshell.connectors.postgres.history import History
from ggshell.connectors.postgres.log import CapturedRows, PostgresLog, SlotStart
from ggshell.demo.postgres_server import REPLICATION_SETTINGS, PostgresServer, find_binaries
from ggshell.errors import CaptureError
from ggshell.home.credential import CredentialStore

SETTINGS = {
    **REPLICATION_SETTINGS,
    "shared_buffers": "16MB",
    "restore_command": "false",
    "hot_standby_feedback": "on",
}
MANY = "INSERT INTO a.items SELECT n, repeat('x', 100), 1 FROM generate_series({}, {}) n"


@pytest.fixture
def source(server_folder: Path, port: int) -> Iterator[PostgresServer]:
    """A server whose data folder the test can restore."""
    name = f"{port}"
    server = PostgresServer(server_folder / f"data-{name}", server_folder / f"s-{name}", port, find_binaries())
    server.initialize(SETTINGS)
    server.start()
    yield server
    server.stop("immediate")


@pytest.fixture
def pipeline(tmp_path: Path, source: PostgresServer, south: str) -> Iterator[Pipeline]:
    """A running pipeline that has replicated one row."""
    pipeline = Pipeline(tmp_path / "home", source.dsn(), south)
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    yield pipeline
    pipeline.close()


def signal(server: PostgresServer, name: str) -> None:
    """Make the next start of the server a recovery, which ends on a new timeline, or a standby."""
    path = server.data / f"{name}.signal"
    path.touch()
    owner = server.data.stat()
    os.chown(path, owner.st_uid, owner.st_gid)


def timeline(server: PostgresServer) -> int:
    with psycopg.connect(server.dsn(), replication="database", autocommit=True) as connection:  # type: ignore[call-overload]
        return int(connection.execute("IDENTIFY_SYSTEM").fetchone()[1])


def copy(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-a", str(folder), str(to)], check=True)


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_a_timeline_that_begins_after_the_captured_changes_is_accepted(
    pipeline: Pipeline, source: PostgresServer, running: bool
) -> None:
    if not running:
        pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    source.stop()
    signal(source, "recovery")
    source.start()
    until("the source accepts writes again", lambda: pipeline.in_north("SELECT pg_is_in_recovery()") == [(False,)])
    assert timeline(source) == 2
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    if not running:
        pipeline.start("ext1")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    assert "GGS-00505" in pipeline.home.report("EXT1").read_text()


def test_extract_waits_for_a_source_in_recovery(pipeline: Pipeline, source: PostgresServer) -> None:
    source.stop()
    signal(source, "standby")
    source.start()
    until("Extract reports the recovery", lambda: "is in recovery" in pipeline.home.report("EXT1").read_text())
    pipeline.in_north("SELECT pg_promote()")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    pipeline.assert_same_rows()


def test_replicat_waits_for_a_target_in_recovery(tmp_path: Path, north: str, source: PostgresServer) -> None:
    target = source
    with contextlib.closing(Pipeline(tmp_path / "home", north, target.dsn())) as pipeline:
        pipeline.add()
        pipeline.start()
        pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
        pipeline.wait_for_rows(1)
        target.stop()
        signal(target, "standby")
        target.start()
        pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
        until("Replicat reports the recovery", lambda: "is in recovery" in pipeline.home.report("REP1").read_text())
        pipeline.in_south("SELECT pg_promote()")
        pipeline.wait_for_rows(2)
        pipeline.assert_same_rows()


def restore_source(pipeline: Pipeline, source: PostgresServer) -> None:
    """Capture more rows than a copy of the source has, then replace the source, including its slot, with the copy."""
    pipeline.run("STOP EXTRACT ext1")
    source.stop()
    copy(source.data, source.data.with_name("data-copy"))
    source.start()
    pipeline.start("ext1")
    pipeline.in_north(MANY.format(2, 2000))
    pipeline.wait_for_rows(2000)
    pipeline.run("STOP EXTRACT ext1")
    source.stop()
    copy(source.data.with_name("data-copy"), source.data)


def test_a_timeline_that_begins_before_the_captured_changes_is_refused(
    pipeline: Pipeline, source: PostgresServer
) -> None:
    restore_source(pipeline, source)
    signal(source, "recovery")
    source.start()
    until("the source accepts writes again", lambda: pipeline.in_north("SELECT pg_is_in_recovery()") == [(False,)])
    pipeline.in_north(MANY.format(5000, 15_000))
    for _ in range(2):
        pipeline.start("ext1")
        report = pipeline.abended_report(EXT1)
        assert "GGS-00504" in report
        assert "timeline 2, which left timeline 1 at" in report
    assert pipeline.in_south("SELECT count(*), max(id) FROM b.items") == [(2000, 2000)]


def test_a_restored_source_is_refused(pipeline: Pipeline, source: PostgresServer) -> None:
    """Without a recovery the timeline is the same, but the log ends too early."""
    restore_source(pipeline, source)
    source.start()
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'another two', 2)")
    pipeline.start("ext1")
    report = pipeline.abended_report(EXT1)
    assert "GGS-00504" in report
    assert "restored to an earlier state" in report


def test_another_cluster_is_refused(source: PostgresServer, north: str) -> None:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE PUBLICATION ggshell")
        connection.execute("SELECT pg_create_logical_replication_slot('ggs_ext1', 'pgoutput')")
        place = int(str(connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()[0]))  # type: ignore[index]
    start = SlotStart("ggs_ext1", place)
    first = PostgresLog.open(north, start, CapturedRows(bool), SystemClock())
    first.close()
    with psycopg.connect(source.dsn(), replication="database", autocommit=True) as connection:  # type: ignore[call-overload]
        other = str(connection.execute("IDENTIFY_SYSTEM").fetchone()[0])
    assert first.history.system != other
    with pytest.raises(CaptureError, match="a different cluster"):
        PostgresLog.open(north, start._replace(known=History(other, 1)), CapturedRows(bool), SystemClock())
    with pytest.raises(CaptureError, match="switched to timeline 1, which left timeline 7 at a position that"):
        PostgresLog.open(
            north, start._replace(known=first.history._replace(timeline=7)), CapturedRows(bool), SystemClock()
        )


@pytest.fixture
def standby(source: PostgresServer, server_folder: Path, unused_port: int) -> Iterator[PostgresServer]:
    name = f"{unused_port}"
    server = PostgresServer(server_folder / f"data-{name}", server_folder / f"s-{name}", unused_port, find_binaries())
    yield server
    server.stop("immediate")


@pytest.fixture
def unused_port(port: int) -> int:
    return port + 1


def start_standby(source: PostgresServer, standby: PostgresServer) -> None:
    """Create the standby from a backup of the running source."""
    with psycopg.connect(source.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        connection.execute("SELECT pg_backup_start('standby', true)")
        copy(source.data, standby.data)
        label, *_ = connection.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone() or ("",)
    (standby.data / "postmaster.pid").unlink()
    shutil.rmtree(standby.data / "pg_replslot")
    (standby.data / "pg_replslot").mkdir()
    (standby.data / "backup_label").write_text(str(label))
    owner = source.data.stat()
    for path in (standby.data / "pg_replslot", standby.data / "backup_label"):
        os.chown(path, owner.st_uid, owner.st_gid)
    (standby.data / "pg_replslot").chmod(0o700)
    with (standby.data / "postgresql.conf").open("a") as file:
        file.write(f"port = {standby.port}\nunix_socket_directories = '{standby.sockets}'\n")
        file.write(f"primary_conninfo = '{source.dsn()}'\nprimary_slot_name = 'standby'\n")
    signal(standby, "standby")
    standby.start()


def promote(pipeline: Pipeline, source: PostgresServer, standby: PostgresServer) -> None:
    """Stop the source when the standby has everything, and promote the standby in its place."""
    end = pipeline.in_north("SELECT pg_current_wal_lsn()::text")[0][0]
    pipeline.north, former = standby.dsn(), pipeline.north
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
    until("the standby has everything", lambda: pipeline.in_north(replayed) == [(True,)])
    assert former == source.dsn()
    source.stop("immediate")
    pipeline.in_north("SELECT pg_promote()")
    CredentialStore(pipeline.home).add("north", standby.dsn(), "", replace=True)


def test_a_promoted_standby_without_the_slot_is_refused(
    pipeline: Pipeline, source: PostgresServer, standby: PostgresServer
) -> None:
    start_standby(source, standby)
    pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'not captured', 2)")
    promote(pipeline, source, standby)
    pipeline.start("ext1")
    assert "GGS-00412" in pipeline.abended_report(EXT1)
    pipeline.run("DBLOGIN USERIDALIAS north", "REGISTER EXTRACT ext1", "START EXTRACT ext1")
    report = pipeline.abended_report(EXT1)
    assert "GGS-00503" in report, "a new slot begins after the row that was not captured"


def test_a_promoted_standby_with_the_slot_is_accepted(
    pipeline: Pipeline, source: PostgresServer, standby: PostgresServer
) -> None:
    """With a failover slot of PostgreSQL 17 or later, which is synchronized before the source fails."""
    if int(pipeline.in_north("SHOW server_version_num")[0][0]) < 170_000:
        pytest.skip("slots are synchronized since PostgreSQL 17")
    start_standby(source, standby)
    pipeline.run("STOP EXTRACT ext1")
    slot = "SELECT active FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
    until("the slot is free", lambda: pipeline.in_north(slot) == [(False,)])
    with psycopg.connect(source.dsn(), replication="database", autocommit=True) as connection:  # type: ignore[call-overload]
        connection.execute("ALTER_REPLICATION_SLOT ggs_ext1 (FAILOVER true)")
    pipeline.start("ext1")
    kept = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'ggs_ext1' AND NOT temporary"

    with psycopg.connect(standby.dsn(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET sync_replication_slots = on")
        connection.execute("SELECT pg_reload_conf()")

    def is_synchronized() -> bool:
        """The standby copies a slot only after it has advanced past the standby's start, so advance it."""
        pipeline.in_north("SELECT pg_log_standby_snapshot()", "UPDATE a.items SET price = price + 1 WHERE id = 1")
        with psycopg.connect(standby.dsn(), autocommit=True) as connection:
            return connection.execute(kept).fetchone() == (1,)

    until("the standby has the slot", is_synchronized)
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'captured', 2)")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'not captured', 2)")
    promote(pipeline, source, standby)
    pipeline.in_north("INSERT INTO a.items VALUES (4, 'on the new timeline', 2)")
    pipeline.start("ext1")
    pipeline.wait_for_rows(4)
    pipeline.assert_same_rows()
    assert "GGS-00505" in pipeline.home.report("EXT1").read_text()
