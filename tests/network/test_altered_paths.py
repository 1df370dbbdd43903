"""ALTER DISTPATH between two homes: what the path sends afterwards, and where."""

from __future__ import annotations

from processes import until
from trail_kit import A, read_all
from two_homes import TwoHomes

from ggshell.trail.name import TrailName


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
