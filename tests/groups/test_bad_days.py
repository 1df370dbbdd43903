"""Failures between two real databases: each is reported with a remedy, and nothing is lost after the fix."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ggshell.home.credential import CredentialStore
from ggshell.home.process_file import ProcessState, read_process_file


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


@pytest.fixture
def running(pipeline: Pipeline) -> Pipeline:
    """A running pipeline that has replicated one row."""
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1.10)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    return pipeline


def test_a_pipeline_replicates_rows(running: Pipeline) -> None:
    running.in_north("UPDATE a.items SET price = 2", "INSERT INTO a.items SELECT n, 'x' FROM generate_series(2, 500) n")
    running.wait_for_rows(500)
    running.assert_same_rows()


# --- logins and rights


def test_a_wrong_password_is_reported(pipeline: Pipeline, north_server: object) -> None:
    data = Path(str(getattr(north_server, "data")))  # noqa: B009 - the fixture's class is the server's
    rules = data / "pg_hba.conf"
    before = rules.read_text()
    pipeline.in_north("DROP ROLE IF EXISTS guarded", "CREATE ROLE guarded LOGIN PASSWORD 'right'")
    try:
        rules.write_text("local all guarded scram-sha-256\n" + before)
        pipeline.in_north("SELECT pg_reload_conf()")
        dsn = make_conninfo(pipeline.north, user="guarded")
        CredentialStore(pipeline.home).add("guarded", dsn, "wrong")
        until("the rule is in effect", lambda: not _logs_in(dsn))
        output = pipeline.run("DBLOGIN USERIDALIAS guarded", fails=True)
        assert "password authentication failed" in output
        assert "wrong" not in output.replace("wrong password", "")
    finally:
        rules.write_text(before)
        pipeline.in_north("SELECT pg_reload_conf()", "DROP ROLE guarded")


def _logs_in(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_missing_replication_attribute_is_reported_with_the_remedy(pipeline: Pipeline) -> None:
    pipeline.in_north("DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN")
    try:
        CredentialStore(pipeline.home).add("plain", make_conninfo(pipeline.north, user="plain"), "")
        output = pipeline.run("DBLOGIN USERIDALIAS plain", "REGISTER EXTRACT ext1", fails=True)
        assert "REPLICATION" in output
    finally:
        pipeline.in_north("DROP ROLE plain")


# --- errors in the parameter files


def test_extract_abends_if_a_table_does_not_exist(pipeline: Pipeline) -> None:
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.nothing;\n")
    pipeline.add()
    pipeline.start("ext1")
    assert "a.nothing" in pipeline.abended_report(EXT1)


def test_replicat_abends_without_loss_if_a_target_table_does_not_exist(running: Pipeline) -> None:
    running.in_south("ALTER TABLE b.items RENAME TO elsewhere")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    report = running.abended_report(REP1)
    assert "b.items" in report
    running.in_south("ALTER TABLE b.elsewhere RENAME TO items")
    running.start("rep1")
    running.wait_for_rows(2)


def test_a_column_that_is_missing_in_the_target_is_reported(running: Pipeline) -> None:
    running.run("STOP REPLICAT rep1")
    running.in_south("ALTER TABLE b.items DROP COLUMN price")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    running.start("rep1")
    report = running.abended_report(REP1)
    assert "price" in report
    assert "b.items" in report
    running.in_south("ALTER TABLE b.items ADD COLUMN price numeric")
    running.start("rep1")
    running.wait_for_rows(2)


def test_a_value_out_of_range_is_discarded_with_its_position(running: Pipeline) -> None:
    running.in_south("ALTER TABLE b.items ALTER COLUMN name TYPE varchar(3)")
    running.in_north("INSERT INTO a.items VALUES (2, 'a name too long', 2)")
    _assert_refused(running, "varying(3)", "id = 2", "name = a name too long")


def test_a_duplicate_key_is_discarded_with_its_position(running: Pipeline) -> None:
    running.in_south("INSERT INTO b.items VALUES (2, 'already here', 0)")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    _assert_refused(running, "duplicate key", "id = 2")
    running.in_south("DELETE FROM b.items WHERE id = 2")
    running.start("rep1")
    running.wait_for_rows(2)
    running.assert_same_rows()


def test_a_missing_row_is_discarded_with_its_position(running: Pipeline) -> None:
    running.in_south("DELETE FROM b.items")
    running.in_north("UPDATE a.items SET price = 3 WHERE id = 1")
    _assert_refused(running, "update", "id = 1")


def _assert_refused(pipeline: Pipeline, *texts: str) -> None:
    """Assert that Replicat abended; report and discard file have the operation, its trail position and its values."""
    report = pipeline.abended_report(REP1)
    discard = pipeline.home.discard("REP1")
    assert str(discard) in report
    assert "seqno 0" in discard.read_text().lower()
    for text in texts:
        assert text in discard.read_text()


@pytest.mark.parametrize(
    ("group", "text", "place"),
    [
        (EXT1, "EXTRACT ext1\nUSERIDALIAS north\nEXTTRIAL ./dirdat/ea\nTABLE a.*;\n", "ext1.prm:3:1"),
        (REP1, "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGTE b.*;\n", "rep1.prm:3:10"),
    ],
)
def test_an_error_in_a_parameter_file_is_reported_with_line_and_column(
    pipeline: Pipeline, group: tuple[str, object], text: str, place: str
) -> None:
    pipeline.add()
    pipeline.write(group[0].lower(), text)
    pipeline.start(group[0])
    report = pipeline.abended_report(group)  # type: ignore[arg-type]
    assert place in report


# --- slots and checkpoints


def test_a_slot_in_use_is_reported_with_the_process_that_reads_it(running: Pipeline) -> None:
    other = ["SELECT pg_create_logical_replication_slot('other', 'test_decoding')"]
    running.in_north(*other)
    running.run("STOP EXTRACT ext1")
    until_state(running.home, *EXT1, ProcessState.STOPPED)
    with psycopg.connect(running.north, autocommit=True) as connection:
        replication = make_conninfo(running.north, replication="database")
        reader = psycopg.pq.PGconn.connect(replication.encode())
        reader.exec_(b"START_REPLICATION SLOT ggs_ext1 LOGICAL 0/0 (proto_version '1', publication_names 'ggshell')")
        pid = connection.execute("SELECT active_pid FROM pg_replication_slots WHERE slot_name='ggs_ext1'").fetchone()
        running.start("ext1")
        report = running.abended_report(EXT1)
        reader.finish()
    assert pid is not None
    assert f"{pid[0]}" in report
    until("the slot is free", lambda: not _active(running))
    running.start("ext1")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    running.wait_for_rows(2)


def _active(pipeline: Pipeline) -> bool:
    return bool(pipeline.in_north("SELECT active FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'")[0][0])


def test_a_slot_that_was_advanced_is_reported(running: Pipeline) -> None:
    running.run("STOP EXTRACT ext1")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("the slot is free", lambda: not _active(running))
    running.in_north("SELECT pg_replication_slot_advance('ggs_ext1', pg_current_wal_lsn())")
    running.start("ext1")
    report = running.abended_report(EXT1)
    assert "GGS-00503" in report
    assert "load the tables again" in report
    _captures_from_now(running)


def _captures_from_now(pipeline: Pipeline) -> None:
    """HELP RECOVERY, before the load."""
    pipeline.run("DBLOGIN USERIDALIAS north", "ALTER EXTRACT ext1, BEGIN NOW", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    until("a new row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 3") == [(1,)])


def test_a_dropped_slot_is_reported(running: Pipeline) -> None:
    running.run("STOP EXTRACT ext1")
    until("the slot is free", lambda: not _active(running))
    running.in_north("SELECT pg_drop_replication_slot('ggs_ext1')", "INSERT INTO a.items VALUES (2, 'two', 2)")
    running.start("ext1")
    assert "GGS-00412" in running.abended_report(EXT1)
    running.run("DBLOGIN USERIDALIAS north", "REGISTER EXTRACT ext1", "START ext1")
    until_state(running.home, *EXT1, ProcessState.ABENDED)
    assert "GGS-00503" in running.home.report("EXT1").read_text(), "a new slot begins after the rows that were lost"
    _captures_from_now(running)


@pytest.mark.parametrize("remedy", ["previous", "file alone"])
def test_a_damaged_checkpoint_file_is_reported_with_the_remedy(running: Pipeline, remedy: str) -> None:
    running.run("STOP REPLICAT rep1")
    path = running.home.checkpoint(*REP1)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    output = running.run("START REPLICAT rep1", fails=True)
    assert str(path) in output
    assert ".previous" in output
    if remedy == "previous":
        path.with_name(path.name + ".previous").replace(path)
        running.start("rep1")
        running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
        running.wait_for_rows(2)


def test_a_second_process_of_a_group_is_refused(running: Pipeline) -> None:
    command = [sys.executable, "-m", "ggshell.groups", "extract", str(running.home.root), "EXT1"]
    entry = read_process_file(running.home.process(*EXT1))
    assert "already running" in running.run("START EXTRACT ext1")
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert result.returncode != 0
    assert read_process_file(running.home.process(*EXT1)) == entry


def test_stop_reports_a_group_that_is_already_stopped(pipeline: Pipeline) -> None:
    pipeline.add()
    assert "not running" in pipeline.run("STOP EXTRACT ext1", fails=True)


# --- the databases are unavailable


def test_a_lost_checkpoint_file_is_reported_with_the_remedy(running: Pipeline) -> None:
    running.run("STOP ER *")
    for group in (EXT1, REP1):
        path = running.home.checkpoint(*group)
        path.unlink()
        output = running.run(f"START {group[0]}", fails=True)
        assert f"copy {path}.previous to {path.name}" in output
        path.with_name(path.name + ".previous").replace(path)
    running.start()
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    running.wait_for_rows(2)


def test_both_processes_wait_for_their_databases(running: Pipeline) -> None:
    running.in_north("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'")
    running.in_south("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%REP1%'")
    running.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    running.wait_for_rows(2)
    assert running.is_running(EXT1)
    assert running.is_running(REP1)
    for group in (EXT1, REP1):
        assert "Reconnected at attempt" in running.home.report(group[0]).read_text()


@contextmanager
def unreachable(dsn: str) -> Iterator[None]:
    """No process can connect to the server, and the groups have lost their connections."""
    server = conninfo_to_dict(dsn)
    socket = Path(str(server["host"]), f".s.PGSQL.{server['port']}")
    hidden = socket.with_name("hidden")
    with psycopg.connect(dsn, autocommit=True) as connection:
        socket.rename(hidden)
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ggshell%'"
            )
            yield
        finally:
            hidden.rename(socket)


def test_every_statement_says_that_extract_waits_for_its_database(running: Pipeline) -> None:
    until("LAG reports the end", lambda: "At EOF" in running.run("LAG EXTRACT ext1"))
    with unreachable(running.north):
        until("LAG says why", lambda: "the database is not responding" in running.run("LAG EXTRACT ext1"))
        assert "At EOF" not in running.run("LAG EXTRACT ext1")
        for statement in ("INFO ALL", "INFO EXTRACT ext1", "INFO EXTRACT ext1, DETAIL", "SEND EXTRACT ext1, STATUS"):
            shown = running.run(statement)
            assert "Waiting since" in shown
            assert "the database is not responding" in shown
        assert running.is_running(EXT1)
    until("LAG reports the end again", lambda: "At EOF" in running.run("LAG EXTRACT ext1"))
    assert "Waiting" not in running.run("INFO ALL", "INFO EXTRACT ext1", "SEND EXTRACT ext1, STATUS")


# --- the disk


def test_a_trail_folder_that_is_not_writable_is_reported(pipeline: Pipeline) -> None:
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./nowhere/ea\nTABLE a.*;\n")
    (pipeline.home.root / "nowhere").write_text("a file, not a folder")
    pipeline.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.items",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
    )
    pipeline.run("ADD EXTTRAIL ./nowhere/ea, EXTRACT ext1", "START EXTRACT ext1")
    report = pipeline.abended_report(EXT1)
    assert str(pipeline.home.root / "nowhere") in report


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_extract_abends_on_a_full_disk_and_resumes_when_there_is_space(pipeline: Pipeline, small_disk: Path) -> None:
    (pipeline.home.root / "dirdat").rmdir()
    (pipeline.home.root / "dirdat").symlink_to(small_disk)
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items SELECT n, 'x' FROM generate_series(1, 100) n")
    pipeline.wait_for_rows(100)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(os.statvfs(small_disk).f_bavail * 4096 - 300_000))
    pipeline.in_north(
        *(
            f"INSERT INTO a.items SELECT n, repeat('x', 90) FROM generate_series({n}, {n} + 499) n"
            for n in range(1000, 9000, 500)
        )
    )
    report = pipeline.abended_report(EXT1)
    assert "No space left" in report
    assert "start the group again: no data is lost" in report
    assert pipeline.is_running(REP1)
    ballast.unlink()
    pipeline.start("ext1")
    pipeline.wait_for_rows(8100)
    pipeline.assert_same_rows()


def test_a_full_disk_for_checkpoint_files_loses_nothing(pipeline: Pipeline, small_disk: Path) -> None:
    (pipeline.home.root / "dirchk").rmdir()
    (pipeline.home.root / "dirchk").symlink_to(small_disk)
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items SELECT n, 'x' FROM generate_series(1, 100) n")
    pipeline.wait_for_rows(100)
    ballast = small_disk / "ballast"
    pipeline.in_north("INSERT INTO a.items SELECT n, 'x' FROM generate_series(101, 200) n")

    def both_abended_after_filling_the_disk() -> bool:
        """A deleted file that was being replaced frees a page, so the disk is filled repeatedly."""
        with pytest.raises(OSError, match="No space"), ballast.open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        return not pipeline.is_running(EXT1) and not pipeline.is_running(REP1)

    until("both processes abend", both_abended_after_filling_the_disk)
    assert "No space left" in pipeline.abended_report(EXT1)
    assert "No space left" in pipeline.abended_report(REP1)
    ballast.unlink()
    pipeline.start()
    pipeline.wait_for_rows(200)
    pipeline.assert_same_rows()
