"""PURGEOLDEXTRACTS: which files are removed, by the number of the guarantee, and no reader loses a file that it needs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import checkpoints
import pytest
from hypothesis import given
from hypothesis import strategies as some
from trail_kit import open_writer, small, write_trail

from ggshell.clock import FakeClock
from ggshell.errors import StateError, StoreError
from ggshell.groups.purge import PurgeTimes, TrailFile, all_needed, matching, needed_from, purge, removable
from ggshell.groups.trail_removal import remove_files, remove_trail
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.network.trail_readers import TrailReader, forget_reader, note_reader
from ggshell.parameters.process_parameters import PurgeRule
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

HOUR = 3_600_000_000
NOW = 1000 * HOUR
FILES = [TrailFile(seqno, NOW - (10 - seqno) * HOUR) for seqno in range(10)]
RULE = PurgeRule("./dirdat/*")


@pytest.mark.parametrize(
    ("rule", "needed", "removed"),
    [
        pytest.param(RULE, 99, 9, id="1 the newest stays though nobody needs it"),
        pytest.param(RULE._replace(keep_files=0), 99, 9, id="1 even when MINKEEPFILES says 0"),
        pytest.param(RULE._replace(keep_files=4), 99, 6, id="1 MINKEEPFILES"),
        pytest.param(RULE._replace(keep_files=40), 99, 0, id="1 more than there are"),
        pytest.param(RULE._replace(keep_hours=7), 99, 4, id="2 MINKEEPHOURS"),
        pytest.param(RULE._replace(keep_hours=7, keep_files=8), 99, 2, id="2 both rules count"),
        pytest.param(RULE, 3, 3, id="3 not what the slowest reader needs"),
        pytest.param(RULE, 0, 0, id="3 the reader has not begun"),
        pytest.param(RULE, None, 0, id="4 no reader is known"),
        pytest.param(RULE._replace(use_checkpoints=False), None, 9, id="4 but without checkpoints"),
        pytest.param(RULE._replace(use_checkpoints=False), 3, 9, id="3 readers do not count without checkpoints"),
    ],
)
def test_the_files_that_a_rule_removes(rule: PurgeRule, needed: int | None, removed: int) -> None:
    assert removable(FILES, needed, rule, NOW) == list(range(removed))


def test_5_a_recent_file_keeps_the_files_after_it() -> None:
    files = [file._replace(modified=NOW) if file.seqno == 2 else file for file in FILES]
    assert removable(files, 99, RULE._replace(keep_hours=1), NOW) == [0, 1]


@given(
    some.lists(some.integers(0, 50), unique=True, max_size=12),
    some.one_of(some.none(), some.integers(0, 60)),
    some.integers(0, 5),
    some.integers(0, 60),
)
def test_a_rule_with_checkpoints_never_removes_a_needed_file(
    numbers: list[int], needed: int | None, keep_files: int, keep_hours: int
) -> None:
    files = [TrailFile(number, NOW - (60 - number) * HOUR) for number in sorted(numbers)]
    rule = PurgeRule("./dirdat/*", keep_files=keep_files, keep_hours=keep_hours)
    removed = removable(files, needed, rule, NOW)
    assert removed == [file.seqno for file in files[: len(removed)]]
    assert all(needed is not None and number < needed for number in removed)
    assert len(files) - len(removed) >= min(len(files), max(1, keep_files))


@pytest.fixture
def trail(home: Home) -> list[Path]:
    """Six files of the trail ./dirdat/ea."""
    files = [home.root / "dirdat" / f"ea{number:09d}" for number in range(6)]
    for number, file in enumerate(files):
        file.write_bytes(b"x")
        os.utime(file, (number, number))
    return files


def remaining(files: list[Path]) -> list[int]:
    return [int(file.name[2:]) for file in files if file.exists()]


def test_files_are_kept_for_the_slowest_reader(home: Home, trail: list[Path]) -> None:
    for checkpoint in (
        checkpoints.extract("EXT1"),
        checkpoints.replicat("R1", seqno=4),
        checkpoints.replicat("R2", seqno=2),
    ):
        checkpoints.save(home, checkpoint)
    assert purge(home, RULE, NOW) == trail[:2]
    assert remaining(trail) == [2, 3, 4, 5]
    assert purge(home, RULE, NOW) == []


def test_files_are_kept_from_the_recovery_position_of_a_reader(home: Home) -> None:
    reader = checkpoints.replicat("R1", seqno=4)
    reader = reader._replace(read=reader.read._replace(recovery=TrailPosition(1, 0)))
    assert needed_from([reader], home) == {TrailName((home.root / "dirdat").resolve(), "ea"): 1}


def test_different_paths_to_a_trail_are_recognized_as_one_trail(home: Home, trail: list[Path]) -> None:
    (home.root / "other").symlink_to("dirdat")
    checkpoints.save(home, checkpoints.extract("EXT1", "./dirdat/ea"))
    checkpoints.save(home, checkpoints.replicat("R1", "dirprm/../other/ea", seqno=1))
    assert purge(home, RULE, NOW) == trail[:1]


def test_a_trail_of_another_home_is_purged_where_it_is_read(home: Home, trail: list[Path]) -> None:
    checkpoints.save(home, checkpoints.replicat("R1", seqno=5))
    assert purge(home, PurgeRule("./dirdat/ea"), NOW) == trail[:5]


def test_only_files_that_match_the_rule_are_removed(home: Home, trail: list[Path]) -> None:
    other_file = home.root / "dirdat" / "notes.txt"
    other_file.write_text("keep")
    other_trail = home.root / "dirdat" / "fa000000001"
    other_trail.write_text("keep")
    checkpoints.save(home, checkpoints.replicat("R1", seqno=5))
    for pattern in ("./dirdat/fa", "./elsewhere/*", "./dirdat/e?x"):
        assert purge(home, PurgeRule(pattern), NOW) == []
    assert purge(home, PurgeRule("./dirdat/e*"), NOW) == trail[:5]
    assert other_file.exists()
    assert other_trail.exists()
    assert sorted(name.prefix for name in matching([], home, "./dirdat/*")) == ["ea", "fa"]


def test_no_file_is_removed_while_a_checkpoint_cannot_be_read(home: Home, trail: list[Path]) -> None:
    checkpoints.save(home, checkpoints.replicat("R1", seqno=5))
    home.checkpoint("R2", checkpoints.replicat("R2").type).write_bytes(b"damaged")
    with pytest.raises(StoreError, match="REPLICAT R2"):
        purge(home, RULE, NOW)
    assert len(remaining(trail)) == 6


def test_a_trail_is_not_removed_while_a_checkpoint_cannot_be_read(home: Home, trail: list[Path]) -> None:
    home.checkpoint("R2", checkpoints.replicat("R2").type).write_bytes(b"damaged")
    name = TrailName(home.root / "dirdat", "ea")
    for remove in (partial(remove_files, home, name, 0, 1), partial(remove_trail, home, name)):
        with pytest.raises(StoreError, match="REPLICAT R2"):
            remove()
    assert len(remaining(trail)) == 6


def test_a_trail_that_another_home_reads_is_not_removed(home: Home, trail: list[Path]) -> None:
    name = TrailName(home.root / "dirdat", "ea")
    note_reader(name, TrailReader("c0ffee", "far", "RP1", 3, 0))
    with pytest.raises(StateError, match="used by RP1 of home c0ffee on far"):
        remove_trail(home, name)
    assert all_needed([], home) == {name.real: 3}
    forget_reader(name, "c0ffee", "RP1")
    assert remove_trail(home, name) == trail


@pytest.mark.parametrize("folder", ["other", "dirprm/../dirdat", "dirprm/../other"])
def test_a_trail_that_a_group_uses_is_not_removed_under_another_name(
    home: Home, trail: list[Path], folder: str
) -> None:
    (home.root / "other").symlink_to("dirdat")
    name = TrailName(home.root / folder, "ea")
    checkpoints.save(home, checkpoints.extract("EXT1"))
    with pytest.raises(StateError, match="used by EXTRACT EXT1"):
        remove_trail(home, name)
    with pytest.raises(StateError, match=r"file 5 .* is still written"):
        remove_files(home, name, 5, 5)
    home.checkpoint("EXT1", GroupKind.EXTRACT).unlink()
    checkpoints.save(home, checkpoints.replicat("R1", seqno=2))
    with pytest.raises(StateError, match="used by REPLICAT R1"):
        remove_trail(home, name)
    with pytest.raises(StateError, match=r"file 2 .* is still needed"):
        remove_files(home, name, 0, 2)
    assert len(remaining(trail)) == 6


def test_a_rule_with_backslashes_is_that_with_slashes(home: Home, trail: list[Path]) -> None:
    checkpoints.save(home, checkpoints.replicat("R1", ".\\dirdat\\ea", seqno=2))
    assert purge(home, PurgeRule(".\\dirdat\\*"), NOW) == trail[:2]


def test_each_rule_has_its_own_frequency() -> None:
    clock = FakeClock()
    often, seldom = PurgeRule("./dirdat/ea", every=60), PurgeRule("./dirdat/ra", every=3600)
    times = PurgeTimes(clock)
    assert times.due([often, seldom]) == [often, seldom]
    assert times.due([often, seldom]) == []
    clock.advance(60)
    assert times.due([often, seldom]) == [often]
    clock.advance(3540)
    assert times.due([often, seldom]) == [often, seldom]


def test_the_file_with_the_durable_mark_is_kept(home: Home) -> None:
    """A new file exists before any of it is durable; until then its writer resumes from the file before it."""
    name = TrailName(home.root / "dirdat", "eb")
    write_trail(name, [small(csn) for csn in range(1, 9)], 900)
    newest = name.sequences()[-1]
    name.file(newest + 1).write_bytes(b"")
    removed = purge(home, PurgeRule("./dirdat/eb", use_checkpoints=False), NOW)
    assert removed
    assert name.sequences() == [newest, newest + 1]
    open_writer(name).close()


def test_an_index_is_removed_with_its_file(home: Home) -> None:
    """By PURGEOLDEXTRACTS, by a chosen range, and with the whole trail."""
    name = TrailName(home.root / "dirdat", "ec")
    write_trail(name, [small(csn) for csn in range(1, 13)], 700)
    indexes = sorted(name.folder.glob(".ec*.index"))
    assert len(indexes) == len(name.sequences()) - 1 > 4
    assert len(purge(home, PurgeRule("./dirdat/ec", use_checkpoints=False, keep_files=4), NOW)) == len(indexes) - 3
    assert sorted(name.folder.glob(".ec*.index")) == indexes[-3:]
    remove_files(home, name, name.sequences()[0], name.sequences()[0])
    assert sorted(name.folder.glob(".ec*.index")) == indexes[-2:]
    remove_trail(home, name)
    assert list(name.folder.glob(".ec*.index")) == []
