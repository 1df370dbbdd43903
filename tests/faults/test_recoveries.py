"""The four recoveries of docs/operations.md, each with real databases: nothing is lost, nothing comes twice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import KINDS, added_again, kill, ledger, open_way, same, work
from processes import until
from ways import EXT1, REP1, Way

from ggshell.trail.finding import last_csn
from ggshell.trail.name import TrailName
from ggshell.types import Csn

ONCE = pytest.mark.parametrize("way", ["classic"], indirect=True)
"""Where the kind of Replicat makes no difference."""


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    """A way with a Replicat of each kind."""
    way = open_way(request.param, tmp_path / "home", north, south)
    yield way
    way.close()


def test_1_killed_between_the_targets_commit_and_the_checkpoint_file(way: Way) -> None:
    """The file is put back to an older one, as a kill before its writing leaves it: the table's row counts."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1")
    path = way.home.checkpoint(*REP1)
    older = path.read_bytes()
    way.start("rep1")
    work(way, 21, 60)
    same(way)
    kill(way, REP1)
    path.write_bytes(older)
    way.start("rep1")
    work(way, 61, 70)
    same(way)


def test_2_the_target_is_restored_from_an_older_backup(way: Way) -> None:
    """A copy of the database, rows and checkpoint table together, is the backup; the way goes on, then it is put back."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1")
    name, backup, admin = _backup(way)
    way.start("rep1")
    work(way, 21, 60)
    same(way)
    way.run("STOP REPLICAT rep1")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"ALTER DATABASE {backup} RENAME TO {name}")
    assert len(ledger(way.in_south, "b")) == 20
    way.start("rep1")
    work(way, 61, 70)
    same(way)
    report = way.home.report("REP1").read_text()
    assert "OGG-30200" in report
    assert "continuing from" in report


def _backup(way: Way) -> tuple[str, str, str]:
    """The target's name, the name of its copy, and a login beside both."""
    parts = psycopg.conninfo.conninfo_to_dict(way.south)
    name = str(parts["dbname"])
    admin = psycopg.conninfo.make_conninfo(way.south, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    return name, f"{name}_backup", admin


def test_a_replicat_whose_row_is_gone_starts_only_where_it_is_told_to(way: Way) -> None:
    """Finding 4: the table was dropped and made again, and the group began at its older file: 58 rows came twice."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1")
    older = way.home.checkpoint(*REP1).read_bytes()
    way.start("rep1")
    work(way, 21, 40)
    same(way)
    running = way.run("DBLOGIN USERIDALIAS south", "DELETE CHECKPOINTTABLE b.checks !", fails=True)
    assert "STOP REPLICAT REP1 first" in running
    way.run("STOP REPLICAT rep1")
    ((last,),) = way.in_south("SELECT log_cmplt_csn FROM b.checks WHERE group_name = 'REP1'")
    way.run("DBLOGIN USERIDALIAS south", "DELETE CHECKPOINTTABLE b.checks !", "ADD CHECKPOINTTABLE b.checks")
    way.home.checkpoint(*REP1).write_bytes(older)
    way.start("rep1")
    report = way.ends(REP1)
    assert "GGS-00516" in report
    assert "START REPLICAT REP1, AFTERCSN" in report
    assert way.in_south("SELECT count(*) FROM b.checks") == [(0,)]
    work(way, 41, 50)
    way.run(f"START REPLICAT rep1, AFTERCSN {last}")
    same(way)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(way, 51, 60)
    same(way)


@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_3_the_checkpoint_file_is_rebuilt_from_the_table(way: Way, loss: str) -> None:
    work(way, 1, 20)
    same(way)
    kill(way, REP1)
    path = way.home.checkpoint(*REP1)
    if loss == "lost":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        path.with_name(path.name + ".previous").unlink()
        assert "ADD REPLICAT" in way.run("START REPLICAT rep1", fails=True)
    said = way.run("DBLOGIN USERIDALIAS south", added_again(way), "START REPLICAT rep1")
    assert ("set aside" in said) == (loss == "damaged")
    work(way, 21, 40)
    same(way)
    assert "GGS-00561" in way.home.report("REP1").read_text()


@ONCE
@pytest.mark.parametrize("loss", ["lost", "damaged"])
def test_extracts_checkpoint_file_is_made_anew_at_its_slots_place(way: Way, loss: str) -> None:
    """The slot is told last, so everything before its place is in the trail, which knows what it holds."""
    work(way, 1, 20)
    same(way)
    kill(way, EXT1)
    work(way, 21, 30)
    path = way.home.checkpoint(*EXT1)
    if loss == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
        assert "confirmed_flush_lsn" in way.run("START EXTRACT ext1", fails=True)
    slot = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1' AND NOT active"
    until("the slot is free", lambda: way.in_north(slot) != [])
    ((place,),) = way.in_north(slot)
    said = way.run(
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {place}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "START EXTRACT ext1",
    )
    assert ("set aside" in said) == (loss == "damaged")
    work(way, 111, 120)
    same(way)


def test_4_all_trails_and_checkpoint_files_are_lost(way: Way) -> None:
    """Set up anew from the source's log: Extract begins at LOG_BSN, Replicat leaves out what its row names."""
    _lose_everything(way)
    ((begin,),) = way.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_anew(way, begin)
    work(way, 41, 50)
    same(way)
    assert "GGS-00561" in way.home.report("REP1").read_text()


def _lose_everything(way: Way) -> None:
    """Lines 1 to 20 are in the target; 21 to 40 are in a trail that goes with all files of the home but the parameters."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1")
    work(way, 21, 40)
    way.run("STOP EXTRACT ext1", "STOP MGR !")
    for folder in ("dirdat", "dirchk", "dirdb", "dirpcs", "BR"):
        shutil.rmtree(way.home.root / folder, ignore_errors=True)


def _set_up_anew(way: Way, begin: object) -> None:
    way.run(
        "CREATE SUBDIRS",
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, LSN {begin}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        added_again(way) + ", EXTSEQNO 0, EXTRBA 0",
        "START EXTRACT ext1",
        "START REPLICAT rep1, FILTERDUPTRANSACTIONS",
    )


@ONCE
def test_4_is_refused_where_the_source_has_let_go_of_the_log(way: Way) -> None:
    """Without CHECKPOINTRETENTIONTIME what was in the lost trail is gone: that is said, and nothing is skipped."""
    text = way.home.parameters("ext1").read_text()
    way.run("STOP EXTRACT ext1")
    way.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    way.run("START EXTRACT ext1")
    _lose_everything(way)
    ((begin,),) = way.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    _set_up_anew(way, begin)
    report = way.ends(EXT1)
    assert "GGS-00503" in report
    assert "load the tables again" in report


def _home_restored(way: Way, backup: Path) -> None:
    """The home as it was 20 transactions ago, and a source that goes on: the trail is written again in other steps."""
    work(way, 1, 20)
    same(way)
    way.run("STOP *", "STOP MGR !")
    shutil.copytree(way.home.root, backup)
    way.start()
    work(way, 21, 30)
    same(way)
    way.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    work(way, 31, 40)
    same(way)
    way.run("STOP *", "STOP MGR !")
    shutil.rmtree(way.home.root)
    backup.rename(way.home.root)
    work(way, 41, 60)


def test_a_home_restored_from_a_backup_goes_on_by_the_csn_of_its_rows(way: Way, tmp_path: Path) -> None:
    """HELP HOMES: the trail is written again from the backup on, and the rows' places lie within other records."""
    _home_restored(way, tmp_path / "backup")
    way.run(
        "DBLOGIN USERIDALIAS south",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
    )
    way.start()
    same(way)
    work(way, 61, 70)
    same(way)


def test_a_restored_home_refuses_a_place_in_the_trail_that_no_longer_follows_its_csn(way: Way, tmp_path: Path) -> None:
    """Nothing said, and the rows between the two places were skipped."""
    _home_restored(way, tmp_path / "backup")
    way.run("START EXTRACT ext1")
    work(way, 61, 69)
    before = Csn.parse(way.in_north("SELECT pg_current_wal_lsn()::text")[0][0])
    work(way, 70, 70)
    trail = TrailName.parse("./dirdat/ea", way.home.root)
    until("Extract has captured the last one", lambda: (last_csn(trail) or before) > before)
    way.run("START REPLICAT rep1")
    report = way.ends(REP1)
    assert "GGS-00565" in report
    remedy = re.search(r"ALTER REPLICAT REP1, EXTSEQNO \d+, EXTRBA \d+, FILTERDUPTRANSACTIONS", report)
    assert remedy is not None, report
    way.run("DBLOGIN USERIDALIAS south", remedy[0], "START REPLICAT rep1")
    same(way)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(way, 71, 80)
    same(way)


def test_delete_replicat_names_where_a_group_that_is_added_again_goes_on(way: Way) -> None:
    """Added again, it began with the trail, and the ledger had each line twice."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1")
    told = way.run("DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1")
    start = re.search(r"START REPLICAT REP1, AFTERCSN \S+", told)
    assert start is not None, told
    assert "some transactions after it" not in told
    work(way, 21, 30)
    way.run("DBLOGIN USERIDALIAS south", added_again(way), start[0])
    same(way)


def test_a_trail_made_anew_under_a_replicat_is_refused(way: Way) -> None:
    """The row stands at a place that the new trail has not reached: waiting there would skip what comes before it."""
    _lose_everything(way)
    way.run("CREATE SUBDIRS", "DBLOGIN USERIDALIAS south", added_again(way), "START REPLICAT rep1")
    report = way.ends(REP1)
    assert "GGS-00562" in report
    assert "EXTSEQNO 0" in report


def lose_the_newest_file(way: Way, trail: str) -> None:
    """With the mark of the trail that HELP RECOVERY has removed, and all older files."""
    for path in [*(way.home.root / "dirdat").glob(f"{trail}0*"), way.home.root / f"dirdat/.{trail}.durable"]:
        path.unlink()


def test_a_trail_that_lost_its_newest_file_is_made_again_without_deleting_a_group(way: Way) -> None:
    """HELP RECOVERY, with CHECKPOINTRETENTIONTIME: the lost file held what the target does not have."""
    work(way, 1, 20)
    same(way)
    way.run("STOP REPLICAT rep1", "SEND EXTRACT ext1 ROLLOVER")
    work(way, 21, 40)
    way.run("STOP EXTRACT ext1")
    max((way.home.root / "dirdat").glob("ea0*")).unlink()
    way.run("START EXTRACT ext1")
    assert "HELP RECOVERY" in way.ends(EXT1)
    ((begin,),) = way.in_south("SELECT log_bsn FROM b.checks WHERE group_name = 'REP1'")
    lose_the_newest_file(way, "ea")
    way.run(
        "DELETE EXTTRAIL ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS north",
        f"ALTER EXTRACT ext1, LSN {begin}",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
        "START EXTRACT ext1",
        "START REPLICAT rep1",
    )
    work(way, 41, 50)
    same(way)
    way.run("STOP EXTRACT ext1", "STOP REPLICAT rep1")
    work(way, 51, 60)
    way.start()
    same(way)


@ONCE
def test_where_every_reader_has_reached_the_slots_place_capture_goes_on_from_there(way: Way) -> None:
    """HELP RECOVERY without CHECKPOINTRETENTIONTIME: nothing that the lost file held is missing in the target."""
    text = way.home.parameters("ext1").read_text()
    way.run("STOP EXTRACT ext1")
    way.write("ext1", text.replace("TRANLOGOPTIONS", "-- TRANLOGOPTIONS"))
    for first in (1, 11, 21, 31):  # what the server writes by itself may move the slot past the last transaction
        way.start("ext1")
        work(way, first, first + 9)
        same(way)
        way.run("STOP EXTRACT ext1")
        ((place,),) = way.in_north("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'")
        ((reached,),) = way.in_south(f"SELECT log_csn::pg_lsn >= '{place}' FROM b.checks WHERE group_name = 'REP1'")
        if reached:
            break
    assert reached
    way.run("STOP REPLICAT rep1")
    work(way, 101, 110)
    lose_the_newest_file(way, "ea")
    north = "DBLOGIN USERIDALIAS north"
    assert "cannot go back" in way.run(north, "ALTER EXTRACT ext1, LSN 0/1", fails=True)
    way.run(
        *("DELETE EXTTRAIL ./dirdat/ea", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10"),
        *(north, f"ALTER EXTRACT ext1, LSN {place}"),
        *(
            "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS",
            "START EXTRACT ext1",
            "START REPLICAT rep1",
        ),
    )
    work(way, 111, 120)
    same(way)
