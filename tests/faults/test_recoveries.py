"""The four recoveries of the README's operations page, each with real databases: nothing is lost, nothing comes twice.

The ledger has no key, so that a row which comes twice stands there twice.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from processes import until, until_state
from ways import EXT1, REP1, Way

from ggshell.process.state import ProcessState, read_process_file

KINDS = {
    "classic": ("", "", ""),
    "parallel": ("PARALLEL, ", "APPLY_PARALLELISM 3\n", ""),
    "coordinated": ("COORDINATED MAXTHREADS 3, ", "", "MAP a.ledger, TARGET b.ledger, THREAD (2);\n"),
}

ONCE = pytest.mark.parametrize("way", ["classic"], indirect=True)
"""Where the kind of Replicat makes no difference."""


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    """A way with a Replicat of each kind, on which two rows have arrived."""
    added, parameters, maps = KINDS[request.param]
    way = Way(tmp_path / "home", north, south)
    way.add_replicat = f"ADD REPLICAT rep1, {added}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"  # type: ignore[attr-defined]
    way.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{parameters}{maps}MAP a.*, TARGET b.*;\n")
    way.write(
        "ext1",
        "EXTRACT ext1\nUSERIDALIAS north\nTRANLOGOPTIONS CHECKPOINTRETENTIONTIME 1\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n",
    )
    for schema, run in (("a", way.in_north), ("b", way.in_south)):
        run(f"CREATE TABLE {schema}.ledger (line int, note text)")
    way.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.*",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        added_again(way),
    )
    way.start()
    yield way
    way.close()


def added_again(way: Way) -> str:
    return str(getattr(way, "add_replicat"))  # noqa: B009 - a fixture's own mark


def work(way: Way, first: int, last: int) -> None:
    """A transaction for each line, and an item that each of them changes."""
    with psycopg.connect(way.north) as connection:
        for line in range(first, last + 1):
            connection.execute("INSERT INTO a.ledger VALUES (%s, 'x')", [line])
            connection.execute(
                "INSERT INTO a.items VALUES (%s, 'n', 1) ON CONFLICT (id) DO UPDATE SET price = a.items.price + 1",
                [line % 7],
            )
            connection.commit()


def ledger(run: object, schema: str) -> list[tuple[object, ...]]:
    return run(f"SELECT line, count(*) FROM {schema}.ledger GROUP BY 1 ORDER BY 1")  # type: ignore[operator,no-any-return]


def same(way: Way) -> None:
    """Every line once, every item as in the source, once everything has arrived."""
    until(
        "everything arrives",
        lambda: (
            way.in_south("SELECT count(DISTINCT line) FROM b.ledger")
            == way.in_north("SELECT count(DISTINCT line) FROM a.ledger")
            and way.in_south("SELECT sum(price) FROM b.items") == way.in_north("SELECT sum(price) FROM a.items")
        ),
        60,
    )
    assert ledger(way.in_south, "b") == ledger(way.in_north, "a")
    way.same()


def kill(way: Way, group: tuple[str, object]) -> None:
    """kill -9, and wait until it is seen."""
    entry = read_process_file(way.home.process(*group))  # type: ignore[arg-type]
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until_state(way.home, *group, ProcessState.ABENDED)  # type: ignore[arg-type]


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
    assert "going back" in report


def _backup(way: Way) -> tuple[str, str, str]:
    """The target's name, the name of its copy, and a login beside both."""
    parts = psycopg.conninfo.conninfo_to_dict(way.south)
    name = str(parts["dbname"])
    admin = psycopg.conninfo.make_conninfo(way.south, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    return name, f"{name}_backup", admin


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
    work(way, 31, 40)
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
    assert "load the tables anew" in report


def test_a_trail_made_anew_under_a_replicat_is_refused(way: Way) -> None:
    """The row stands at a place that the new trail has not reached: waiting there would skip what comes before it."""
    _lose_everything(way)
    way.run("CREATE SUBDIRS", "DBLOGIN USERIDALIAS south", added_again(way), "START REPLICAT rep1")
    report = way.ends(REP1)
    assert "GGS-00562" in report
    assert "EXTSEQNO 0" in report
