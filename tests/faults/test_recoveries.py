"""The four recoveries of docs/operations.md with real databases: nothing is lost and nothing is applied twice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import (
    KINDS,
    add_replicat_statement,
    kill,
    ledger,
    open_pipeline,
    wait_and_compare,
    write_lines,
)
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.trail.finding import last_csn
from ggshell.trail.name import TrailName
from ggshell.types import Csn

ONCE = pytest.mark.parametrize("pipeline", ["classic"], indirect=True)
"""For tests in which the kind of Replicat makes no difference."""


@pytest.fixture(params=KINDS)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A pipeline with a Replicat of each kind."""
    pipeline = open_pipeline(request.param, tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_1_killed_between_the_targets_commit_and_the_checkpoint_file(pipeline: Pipeline) -> None:
    """An older file is restored, as after a kill before it is written: the row of the table has priority."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    path = pipeline.home.checkpoint(*REP1)
    older = path.read_bytes()
    pipeline.start("rep1")
    write_lines(pipeline, 21, 60)
    wait_and_compare(pipeline)
    kill(pipeline, REP1)
    path.write_bytes(older)
    pipeline.start("rep1")
    write_lines(pipeline, 61, 70)
    wait_and_compare(pipeline)


def test_2_the_target_is_restored_from_an_older_backup(pipeline: Pipeline) -> None:
    """The backup is a copy of the database with rows and checkpoint table; it is restored after more transactions."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    name, backup, admin = _backup(pipeline)
    pipeline.start("rep1")
    write_lines(pipeline, 21, 60)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"ALTER DATABASE {backup} RENAME TO {name}")
    assert len(ledger(pipeline.in_south, "b")) == 20
    pipeline.start("rep1")
    write_lines(pipeline, 61, 70)
    wait_and_compare(pipeline)
    report = pipeline.home.report("REP1").read_text()
    assert "OGG-30200" in report
    assert "continuing from" in report


def _backup(pipeline: Pipeline) -> tuple[str, str, str]:
    """Copy the target; returns its name, the name of the copy, and a login to another database."""
    parts = psycopg.conninfo.conninfo_to_dict(pipeline.south)
    name = str(parts["dbname"])
    admin = psycopg.conninfo.make_conninfo(pipeline.south, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    return name, f"{name}_backup", admin


def test_a_replicat_with_a_lost_row_starts_only_at_a_given_csn(pipeline: Pipeline) -> None:
    """Regression: after the table was dropped and created again, the group used its older file and repeated 58 rows."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    older = pipeline.home.checkpoint(*REP1).read_bytes()
    pipeline.start("rep1")
    write_lines(pipeline, 21, 40)
    wait_and_compare(pipeline)
    running = pipeline.run("DBLOGIN USERIDALIAS south", "DELETE CHECKPOINTTABLE b.checks !", fails=True)
    assert "STOP REPLICAT REP1 first" in running
    pipeline.run("STOP REPLICAT rep1")
    ((last,),) = pipeline.in_south("SELECT log_cmplt_csn FROM b.checks WHERE group_name = 'REP1'")
    pipeline.run("DBLOGIN USERIDALIAS south", "DELETE CHECKPOINTTABLE b.checks !", "ADD CHECKPOINTTABLE b.checks")
    pipeline.home.checkpoint(*REP1).write_bytes(older)
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00516" in report
    assert "START REPLICAT REP1, AFTERCSN" in report
    assert pipeline.in_south("SELECT count(*) FROM b.checks") == [(0,)]
    write_lines(pipeline, 41, 50)
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {last}")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    write_lines(pipeline, 51, 60)
    wait_and_compare(pipeline)


@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_3_the_checkpoint_file_is_rebuilt_from_the_table(pipeline: Pipeline, loss: str) -> None:
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    kill(pipeline, REP1)
    path = pipeline.home.checkpoint(*REP1)
    if loss == "lost":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        path.with_name(path.name + ".previous").unlink()
        assert "ADD REPLICAT" in pipeline.run("START REPLICAT rep1", fails=True)
    output = pipeline.run("DBLOGIN USERIDALIAS south", add_replicat_statement(pipeline), "START REPLICAT rep1")
    assert ("set aside" in output) == (loss == "damaged")
    write_lines(pipeline, 21, 40)
    wait_and_compare(pipeline)
    assert "GGS-00561" in pipeline.home.report("REP1").read_text()


@ONCE
@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_extracts_checkpoint_file_is_created_again_at_the_position_of_its_slot(pipeline: Pipeline, loss: str) -> None:
    """The slot is updated last, so everything before its position is in the trail, which is not written again."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    kill(pipeline, EXT1)
    write_lines(pipeline, 21, 30)
    path = pipeline.home.checkpoint(*EXT1)
    if loss == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
        assert "confirmed_flush_lsn" in pipeline.run("START EXTRACT ext1", fails=True)
    slot = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1' AND NOT active"
    until("the slot is free", lambda: pipeline.in_north(slot) != [])
    ((place,),) = pipeline.in_north(slot)
    output = pipeline.run(
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {place}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "START EXTRACT ext1",
    )
    assert ("set aside" in output) == (loss == "damaged")
    write_lines(pipeline, 111, 120)
    wait_and_compare(pipeline)


def test_4_all_trails_and_checkpoint_files_are_lost(pipeline: Pipeline) -> None:
    """Set up again from the source's log: Extract begins at LOG_BSN, and Replicat skips what its row covers."""
    _lose_everything(pipeline)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_again(pipeline, begin)
    write_lines(pipeline, 41, 50)
    wait_and_compare(pipeline)
    assert "GGS-00561" in pipeline.home.report("REP1").read_text()


def _lose_everything(pipeline: Pipeline) -> None:
    """Apply lines 1 to 20, capture 21 to 40, then remove all files of the home except the parameters."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    write_lines(pipeline, 21, 40)
    pipeline.run("STOP EXTRACT ext1", "STOP MGR !")
    for folder in ("dirdat", "dirchk", "dirdb", "dirpcs", "BR"):
        shutil.rmtree(pipeline.home.root / folder, ignore_errors=True)


def _set_up_again(pipeline: Pipeline, begin: object) -> None:
    pipeline.run(
        "CREATE SUBDIRS",
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {begin}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        add_replicat_statement(pipeline) + ", EXTSEQNO 0, EXTRBA 0",
        "START EXTRACT ext1",
        "START REPLICAT rep1, FILTERDUPTRANSACTIONS",
    )


@ONCE
def test_4_is_refused_if_the_source_no_longer_has_the_log(pipeline: Pipeline) -> None:
    """Without CHECKPOINTRETENTIONTIME the content of the lost trail cannot be recovered: this is reported."""
    text = pipeline.home.parameters("ext1").read_text()
    pipeline.run("STOP EXTRACT ext1")
    pipeline.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    pipeline.run("START EXTRACT ext1")
    _lose_everything(pipeline)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_again(pipeline, begin)
    report = pipeline.abended_report(EXT1)
    assert "GGS-00503" in report
    assert "load the tables again" in report


def _restore_home(pipeline: Pipeline, backup: Path) -> None:
    """Restore the home from 20 transactions ago while the source continues: the trail is written differently."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP *", "STOP MGR !")
    shutil.copytree(pipeline.home.root, backup)
    pipeline.start()
    write_lines(pipeline, 21, 30)
    wait_and_compare(pipeline)
    pipeline.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    write_lines(pipeline, 31, 40)
    wait_and_compare(pipeline)
    pipeline.run("STOP *", "STOP MGR !")
    shutil.rmtree(pipeline.home.root)
    backup.rename(pipeline.home.root)
    write_lines(pipeline, 41, 60)


def test_a_home_restored_from_a_backup_resumes_by_the_csn_of_its_rows(pipeline: Pipeline, tmp_path: Path) -> None:
    """HELP HOMES: the trail is written again from the backup on, and the positions of the rows are in other records."""
    _restore_home(pipeline, tmp_path / "backup")
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
    )
    pipeline.start()
    wait_and_compare(pipeline)
    write_lines(pipeline, 61, 70)
    wait_and_compare(pipeline)


def test_a_restored_home_refuses_a_position_that_does_not_follow_its_csn(pipeline: Pipeline, tmp_path: Path) -> None:
    """Regression: the rows between the two positions were silently skipped."""
    _restore_home(pipeline, tmp_path / "backup")
    pipeline.run("START EXTRACT ext1")
    write_lines(pipeline, 61, 69)
    before = Csn.parse(pipeline.in_north("SELECT pg_current_wal_lsn()::text")[0][0])
    write_lines(pipeline, 70, 70)
    trail = TrailName.parse("./dirdat/ea", pipeline.home.root)
    until("Extract has captured the last transaction", lambda: (last_csn(trail) or before) > before)
    pipeline.run("START REPLICAT rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00565" in report
    remedy = re.search(r"ALTER REPLICAT REP1, EXTSEQNO \d+, EXTRBA \d+, FILTERDUPTRANSACTIONS", report)
    assert remedy is not None, report
    pipeline.run("DBLOGIN USERIDALIAS south", remedy[0], "START REPLICAT rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    write_lines(pipeline, 71, 80)
    wait_and_compare(pipeline)


def test_delete_replicat_suggests_where_to_resume_when_it_is_added_again(pipeline: Pipeline) -> None:
    """Regression: the group began at the start of the trail and repeated every line."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    output = pipeline.run("DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1")
    start = re.search(r"START REPLICAT REP1, AFTERCSN \S+", output)
    assert start is not None, output
    assert "some transactions after it" not in output
    write_lines(pipeline, 21, 30)
    pipeline.run("DBLOGIN USERIDALIAS south", add_replicat_statement(pipeline), start[0])
    wait_and_compare(pipeline)


def test_a_trail_that_was_created_again_is_refused_by_replicat(pipeline: Pipeline) -> None:
    """The row's position is past the end of the new trail: waiting there would skip the changes before it."""
    _lose_everything(pipeline)
    pipeline.run("CREATE SUBDIRS", "DBLOGIN USERIDALIAS south", add_replicat_statement(pipeline), "START REPLICAT rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00562" in report
    assert "EXTSEQNO 0" in report


def remove_trail(pipeline: Pipeline, trail: str) -> None:
    """Remove all files of a trail and its durable mark, as HELP RECOVERY describes."""
    for path in [*(pipeline.home.root / "dirdat").glob(f"{trail}0*"), pipeline.home.root / f"dirdat/.{trail}.durable"]:
        path.unlink()


def test_a_trail_without_its_newest_file_is_created_again_without_deleting_a_group(pipeline: Pipeline) -> None:
    """HELP RECOVERY with CHECKPOINTRETENTIONTIME: the lost file had changes that are not in the target."""
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "SEND EXTRACT ext1 ROLLOVER")
    write_lines(pipeline, 21, 40)
    pipeline.run("STOP EXTRACT ext1")
    max((pipeline.home.root / "dirdat").glob("ea0*")).unlink()
    pipeline.run("START EXTRACT ext1")
    assert "HELP RECOVERY" in pipeline.abended_report(EXT1)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    remove_trail(pipeline, "ea")
    pipeline.run(
        "DELETE EXTTRAIL ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS north",
        f"ALTER EXTRACT ext1, LSN {begin}",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
        "START EXTRACT ext1",
        "START REPLICAT rep1",
    )
    write_lines(pipeline, 41, 50)
    wait_and_compare(pipeline)
    pipeline.run("STOP EXTRACT ext1", "STOP REPLICAT rep1")
    write_lines(pipeline, 51, 60)
    pipeline.start()
    wait_and_compare(pipeline)


@ONCE
def test_capture_resumes_at_the_slot_if_every_reader_has_reached_it(pipeline: Pipeline) -> None:
    """HELP RECOVERY without CHECKPOINTRETENTIONTIME: the target has all changes of the lost file."""
    text = pipeline.home.parameters("ext1").read_text()
    pipeline.run("STOP EXTRACT ext1")
    pipeline.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    for first in (1, 11, 21, 31):  # records of the server itself can move the slot past the last transaction
        pipeline.start("ext1")
        write_lines(pipeline, first, first + 9)
        wait_and_compare(pipeline)
        pipeline.run("STOP EXTRACT ext1")
        ((place,),) = pipeline.in_north(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
        )
        ((reached,),) = pipeline.in_south(
            f"SELECT log_csn::pg_lsn >= '{place}' FROM b.checks WHERE group_name = 'REP1'"
        )
        if reached:
            break
    assert reached
    pipeline.run("STOP REPLICAT rep1")
    write_lines(pipeline, 101, 110)
    remove_trail(pipeline, "ea")
    north = "DBLOGIN USERIDALIAS north"
    assert "cannot go back" in pipeline.run(north, "ALTER EXTRACT ext1, LSN 0/1", fails=True)
    pipeline.run(
        *("DELETE EXTTRAIL ./dirdat/ea", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10"),
        *(north, f"ALTER EXTRACT ext1, LSN {place}"),
        *(
            "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
            "START EXTRACT ext1",
            "START REPLICAT rep1",
        ),
    )
    write_lines(pipeline, 111, 120)
    wait_and_compare(pipeline)
