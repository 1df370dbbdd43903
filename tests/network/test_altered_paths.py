"""ALTER DISTPATH between two homes: what the path sends afterwards, and where."""

from __future__ import annotations

import shutil
from pathlib import Path

from processes import until
from trail_kit import A, read_all
from two_homes import TwoHomes

from ggshell.trail.durable import mark_path
from ggshell.trail.name import TrailName

INFO = "INFO DISTPATH dp1"


def test_a_path_with_another_target_begins_there_at_its_position(homes: TwoHomes) -> None:
    homes.write(20)
    homes.start_path()
    homes.until_equal()
    first = homes.rows()
    homes.run(f"STOP DISTPATH dp1; ALTER DISTPATH dp1 TARGET {homes.url(trail='db')}")
    homes.run("ALTER DISTPATH dp1 TARGET SIZEMB 1; ALTER DISTPATH dp1 TARGET COMPRESSION THRESHOLD 0")
    homes.write(30)
    homes.run("START DISTPATH dp1")
    other = TrailName(homes.target.home / "dirdat", "db")
    until("the new trail has the new rows", lambda: other.sequences() != [] and len(read_all(other)) >= 60)
    assert read_all(other) == read_all(homes.read)[len(first) :]
    assert homes.rows() == first
    assert "db" in homes.run("INFO DISTPATH dp1, DETAIL")
    homes.run(f"STOP DISTPATH dp1; ALTER DISTPATH dp1 TARGET {homes.url()}; ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0")
    homes.run("START DISTPATH dp1")
    homes.until_equal()


def test_a_rule_selects_the_tables_that_are_sent(homes: TwoHomes) -> None:
    homes.run(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {homes.url()}")
    homes.run(f"ALTER DISTPATH dp1 RULE FILTER OBJECTNAMES other.*, {A.name} ACTION EXCLUDE")
    homes.write(5)
    homes.run("START DISTPATH dp1")
    until("everything was read", lambda: "At EOF" in homes.run("SEND DISTPATH dp1 STATUS"))
    assert homes.rows() == []
    homes.run(f"STOP DISTPATH dp1; ALTER DISTPATH dp1 RULE FILTER OBJECTNAMES {A.name}, other.* ACTION INCLUDE")
    homes.run("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0; START DISTPATH dp1")
    homes.until_equal()
    assert "running" in homes.run("ALTER DISTPATH dp1 RULE PASSTHRU", code=1)


def test_a_path_sends_again_what_a_restored_target_lacks(homes: TwoHomes, tmp_path: Path) -> None:
    homes.write(20)
    homes.start_path()
    homes.until_equal()
    backup = shutil.copytree(homes.written.folder, tmp_path / "backup", ignore=shutil.ignore_patterns("*.wake"))
    homes.write(20)
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    shutil.rmtree(homes.written.folder)
    shutil.copytree(backup, homes.written.folder)
    homes.run("START DISTPATH dp1")
    until("the path has ended", lambda: "GGS-00562" in homes.report())
    assert "ALTER DISTPATH … BEGIN SEQNO n RBA 0" in homes.report()
    homes.run("ALTER DISTPATH dp1 BEGIN NOW; START DISTPATH dp1")
    until("a gap is not accepted", lambda: homes.report().count("GGS-00562") == 1 and "ABENDED" in homes.run(INFO))
    homes.run("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0; START DISTPATH dp1")
    homes.until_equal()


def test_a_path_says_how_to_replace_lost_files_of_its_target_trail(homes: TwoHomes) -> None:
    homes.write(20)
    homes.start_path()
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    homes.written.file(0).unlink()
    homes.run("START DISTPATH dp1")
    until("the path has ended", lambda: "OGG-01332" in homes.report())
    assert "DELETE RECVPATH … PURGE in the target home" in " ".join(homes.report().split())
    homes.target.run("DELETE RECVPATH dp1 PURGE !")
    homes.run("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0; START DISTPATH dp1")
    homes.until_equal()


def test_a_path_says_that_it_skips_a_trail_of_another_database(homes: TwoHomes) -> None:
    """The CSNs of the new source are lower than those that the target trail contains."""
    homes._next = 1000
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    mark_path(homes.read).unlink()
    for seqno in homes.read.sequences():
        homes.read.file(seqno).unlink()
    homes._next = 1
    homes.write(5)
    homes.run("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0; START DISTPATH dp1")
    until("the warning", lambda: "GGS-00964" in homes.report())
    assert homes.report().count("GGS-00964") == 1
    homes.run(f"STOP DISTPATH dp1; ALTER DISTPATH dp1 TARGET {homes.url(trail='db')}")
    homes.run("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0; START DISTPATH dp1")
    homes.written = TrailName(homes.target.home / "dirdat", "db")
    homes.until_equal()
    assert "GGS-00964" not in homes.report()
