"""The four recoveries of docs/operations.md, each with real databases: nothing is lost, nothing comes twice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import KINDS, added_again, kill, ledger, open_pipeline, same, work
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.trail.finding import last_csn
from ggshell.trail.name import TrailName
from ggshell.types import Csn

ONCE = pytest.mark.parametrize("pipeline", ["classic"], indirect=True)
"""Where the kind of Replicat makes no difference."""


@pytest.fixture(params=KINDS)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A way with a Replicat of each kind."""
    pipeline = open_pipeline(request.param, tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_1_killed_between_the_targets_commit_and_the_checkpoint_file(pipeline: Pipeline) -> None:
    """The file is put back to an older one, as a kill before its writing leaves it: the table's row counts."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    path = pipeline.home.checkpoint(*REP1)
    older = path.read_bytes()
    pipeline.start("rep1")
    work(pipeline, 21, 60)
    same(pipeline)
    kill(pipeline, REP1)
    path.write_bytes(older)
    pipeline.start("rep1")
    work(pipeline, 61, 70)
    same(pipeline)


def test_2_the_target_is_restored_from_an_older_backup(pipeline: Pipeline) -> None:
    """A copy of the database, rows and checkpoint table together, is the backup; the way goes on, then it is put back."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    name, backup, admin = _backup(pipeline)
    pipeline.start("rep1")
    work(pipeline, 21, 60)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"ALTER DATABASE {backup} RENAME TO {name}")
    assert len(ledger(pipeline.in_south, "b")) == 20
    pipeline.start("rep1")
    work(pipeline, 61, 70)
    same(pipeline)
    report = pipeline.home.report("REP1").read_text()
    assert "OGG-30200" in report
    assert "continuing from" in report


def _backup(pipeline: Pipeline) -> tuple[str, str, str]:
    """The target's name, the name of its copy, and a login beside both."""
    parts = psycopg.conninfo.conninfo_to_dict(pipeline.south)
    name = str(parts["dbname"])
    admin = psycopg.conninfo.make_conninfo(pipeline.south, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    return name, f"{name}_backup", admin


def test_a_replicat_whose_row_is_gone_starts_only_where_it_is_told_to(pipeline: Pipeline) -> None:
    """Finding 4: the table was dropped and made again, and the group began at its older file: 58 rows came twice."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    older = pipeline.home.checkpoint(*REP1).read_bytes()
    pipeline.start("rep1")
    work(pipeline, 21, 40)
    same(pipeline)
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
    work(pipeline, 41, 50)
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {last}")
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(pipeline, 51, 60)
    same(pipeline)


@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_3_the_checkpoint_file_is_rebuilt_from_the_table(pipeline: Pipeline, loss: str) -> None:
    work(pipeline, 1, 20)
    same(pipeline)
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
    said = pipeline.run("DBLOGIN USERIDALIAS south", added_again(pipeline), "START REPLICAT rep1")
    assert ("set aside" in said) == (loss == "damaged")
    work(pipeline, 21, 40)
    same(pipeline)
    assert "GGS-00561" in pipeline.home.report("REP1").read_text()


@ONCE
@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_extracts_checkpoint_file_is_made_anew_at_its_slots_place(pipeline: Pipeline, loss: str) -> None:
    """The slot is told last, so everything before its place is in the trail, which knows what it holds."""
    work(pipeline, 1, 20)
    same(pipeline)
    kill(pipeline, EXT1)
    work(pipeline, 21, 30)
    path = pipeline.home.checkpoint(*EXT1)
    if loss == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
        assert "confirmed_flush_lsn" in pipeline.run("START EXTRACT ext1", fails=True)
    slot = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1' AND NOT active"
    until("the slot is free", lambda: pipeline.in_north(slot) != [])
    ((place,),) = pipeline.in_north(slot)
    said = pipeline.run(
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {place}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "START EXTRACT ext1",
    )
    assert ("set aside" in said) == (loss == "damaged")
    work(pipeline, 111, 120)
    same(pipeline)


def test_4_all_trails_and_checkpoint_files_are_lost(pipeline: Pipeline) -> None:
    """Set up anew from the source's log: Extract begins at LOG_BSN, Replicat leaves out what its row names."""
    _lose_everything(pipeline)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_anew(pipeline, begin)
    work(pipeline, 41, 50)
    same(pipeline)
    assert "GGS-00561" in pipeline.home.report("REP1").read_text()


def _lose_everything(pipeline: Pipeline) -> None:
    """Lines 1 to 20 are in the target; 21 to 40 are in a trail that goes with all files of the home but the parameters."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    work(pipeline, 21, 40)
    pipeline.run("STOP EXTRACT ext1", "STOP MGR !")
    for folder in ("dirdat", "dirchk", "dirdb", "dirpcs", "BR"):
        shutil.rmtree(pipeline.home.root / folder, ignore_errors=True)


def _set_up_anew(pipeline: Pipeline, begin: object) -> None:
    pipeline.run(
        "CREATE SUBDIRS",
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {begin}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        added_again(pipeline) + ", EXTSEQNO 0, EXTRBA 0",
        "START EXTRACT ext1",
        "START REPLICAT rep1, FILTERDUPTRANSACTIONS",
    )


@ONCE
def test_4_is_refused_where_the_source_has_let_go_of_the_log(pipeline: Pipeline) -> None:
    """Without CHECKPOINTRETENTIONTIME what was in the lost trail is gone: that is said, and nothing is skipped."""
    text = pipeline.home.parameters("ext1").read_text()
    pipeline.run("STOP EXTRACT ext1")
    pipeline.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    pipeline.run("START EXTRACT ext1")
    _lose_everything(pipeline)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_anew(pipeline, begin)
    report = pipeline.abended_report(EXT1)
    assert "GGS-00503" in report
    assert "load the tables again" in report


def _home_restored(pipeline: Pipeline, backup: Path) -> None:
    """The home as it was 20 transactions ago, and a source that goes on: the trail is written again in other steps."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP *", "STOP MGR !")
    shutil.copytree(pipeline.home.root, backup)
    pipeline.start()
    work(pipeline, 21, 30)
    same(pipeline)
    pipeline.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    work(pipeline, 31, 40)
    same(pipeline)
    pipeline.run("STOP *", "STOP MGR !")
    shutil.rmtree(pipeline.home.root)
    backup.rename(pipeline.home.root)
    work(pipeline, 41, 60)


def test_a_home_restored_from_a_backup_goes_on_by_the_csn_of_its_rows(pipeline: Pipeline, tmp_path: Path) -> None:
    """HELP HOMES: the trail is written again from the backup on, and the rows' places lie within other records."""
    _home_restored(pipeline, tmp_path / "backup")
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
    )
    pipeline.start()
    same(pipeline)
    work(pipeline, 61, 70)
    same(pipeline)


def test_a_restored_home_refuses_a_place_in_the_trail_that_does_not_follow_its_csn(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Nothing said, and the rows between the two places were skipped."""
    _home_restored(pipeline, tmp_path / "backup")
    pipeline.run("START EXTRACT ext1")
    work(pipeline, 61, 69)
    before = Csn.parse(pipeline.in_north("SELECT pg_current_wal_lsn()::text")[0][0])
    work(pipeline, 70, 70)
    trail = TrailName.parse("./dirdat/ea", pipeline.home.root)
    until("Extract has captured the last one", lambda: (last_csn(trail) or before) > before)
    pipeline.run("START REPLICAT rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00565" in report
    remedy = re.search(r"ALTER REPLICAT REP1, EXTSEQNO \d+, EXTRBA \d+, FILTERDUPTRANSACTIONS", report)
    assert remedy is not None, report
    pipeline.run("DBLOGIN USERIDALIAS south", remedy[0], "START REPLICAT rep1")
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(pipeline, 71, 80)
    same(pipeline)


def test_delete_replicat_names_where_a_group_that_is_added_again_goes_on(pipeline: Pipeline) -> None:
    """Added again, it began with the trail, and the ledger had each line twice."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    told = pipeline.run("DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1")
    start = re.search(r"START REPLICAT REP1, AFTERCSN \S+", told)
    assert start is not None, told
    assert "some transactions after it" not in told
    work(pipeline, 21, 30)
    pipeline.run("DBLOGIN USERIDALIAS south", added_again(pipeline), start[0])
    same(pipeline)


def test_a_trail_made_anew_under_a_replicat_is_refused(pipeline: Pipeline) -> None:
    """The row stands at a place that the new trail has not reached: waiting there would skip what comes before it."""
    _lose_everything(pipeline)
    pipeline.run("CREATE SUBDIRS", "DBLOGIN USERIDALIAS south", added_again(pipeline), "START REPLICAT rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00562" in report
    assert "EXTSEQNO 0" in report


def lose_the_newest_file(pipeline: Pipeline, trail: str) -> None:
    """With the mark of the trail that HELP RECOVERY has removed, and all older files."""
    for path in [*(pipeline.home.root / "dirdat").glob(f"{trail}0*"), pipeline.home.root / f"dirdat/.{trail}.durable"]:
        path.unlink()


def test_a_trail_that_lost_its_newest_file_is_made_again_without_deleting_a_group(pipeline: Pipeline) -> None:
    """HELP RECOVERY, with CHECKPOINTRETENTIONTIME: the lost file held what the target does not have."""
    work(pipeline, 1, 20)
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1", "SEND EXTRACT ext1 ROLLOVER")
    work(pipeline, 21, 40)
    pipeline.run("STOP EXTRACT ext1")
    max((pipeline.home.root / "dirdat").glob("ea0*")).unlink()
    pipeline.run("START EXTRACT ext1")
    assert "HELP RECOVERY" in pipeline.abended_report(EXT1)
    ((begin,),) = pipeline.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    lose_the_newest_file(pipeline, "ea")
    pipeline.run(
        "DELETE EXTTRAIL ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS north",
        f"ALTER EXTRACT ext1, LSN {begin}",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
        "START EXTRACT ext1",
        "START REPLICAT rep1",
    )
    work(pipeline, 41, 50)
    same(pipeline)
    pipeline.run("STOP EXTRACT ext1", "STOP REPLICAT rep1")
    work(pipeline, 51, 60)
    pipeline.start()
    same(pipeline)


@ONCE
def test_where_every_reader_has_reached_the_slots_place_capture_goes_on_from_there(pipeline: Pipeline) -> None:
    """HELP RECOVERY without CHECKPOINTRETENTIONTIME: nothing that the lost file held is missing in the target."""
    text = pipeline.home.parameters("ext1").read_text()
    pipeline.run("STOP EXTRACT ext1")
    pipeline.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    for first in (1, 11, 21, 31):  # what the server writes by itself may move the slot past the last transaction
        pipeline.start("ext1")
        work(pipeline, first, first + 9)
        same(pipeline)
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
    work(pipeline, 101, 110)
    lose_the_newest_file(pipeline, "ea")
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
    work(pipeline, 111, 120)
    same(pipeline)
