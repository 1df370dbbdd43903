"""Trails that other homes send are found in every folder of a home, also when folders change between two looks."""

from __future__ import annotations

import os
from pathlib import Path

from ggshell.cli.received_paths import received_paths, select_paths
from ggshell.cli.sender_files import _KNOWN, sent_trails
from ggshell.home.home import Home
from ggshell.network.trail_owner import TrailOwner, claim
from ggshell.trail.name import TrailName


def names(root: Path) -> list[str]:
    return sorted(str(each.folder.relative_to(root) / each.prefix) for each in sent_trails(root))


def aged(folder: Path) -> None:
    """Make a folder look as if it had changed long ago."""
    os.utime(folder, ns=(10**18, 10**18 + len(list(folder.iterdir()))))


def test_senders_are_found_after_changes_of_folders(tmp_path: Path) -> None:
    inner = tmp_path / "dirdat" / "far"
    inner.mkdir(parents=True)
    (inner / ".ab.sender").touch()
    (inner / ".abc.sender").touch()
    for folder in (inner, tmp_path / "dirdat", tmp_path):
        aged(folder)
    assert names(tmp_path) == ["dirdat/far/ab"]
    assert inner in _KNOWN
    (inner / ".cd.sender").touch()
    (tmp_path / "dirdat" / ".ef.sender").touch()
    assert names(tmp_path) == ["dirdat/ef", "dirdat/far/ab", "dirdat/far/cd"]
    (inner / ".ab.sender").unlink()
    assert names(tmp_path) == ["dirdat/ef", "dirdat/far/cd"]


def test_a_folder_that_has_not_changed_is_not_listed_again(tmp_path: Path) -> None:
    (tmp_path / ".ab.sender").touch()
    aged(tmp_path)
    assert names(tmp_path) == ["ab"]
    before = tmp_path.stat().st_mtime_ns
    (tmp_path / ".cd.sender").touch()
    os.utime(tmp_path, ns=(before, before))
    assert names(tmp_path) == ["ab"]


def test_a_linked_folder_of_the_home_is_followed(tmp_path: Path) -> None:
    home, disk = Home(tmp_path / "home"), tmp_path / "disk"
    home.root.mkdir()
    disk.mkdir()
    (home.root / "dirdat").symlink_to(disk)
    (disk / "again").symlink_to(home.root)
    claim(TrailName(disk, "ab"), TrailOwner("0123", "source", "DP1", 1))
    assert names(home.root) == ["dirdat/ab"]
    (found,) = received_paths(home)
    assert (found.trail, found.place) == ("./dirdat/ab", TrailName(disk, "ab"))
    assert select_paths(home, "./dirdat/ab") == [found]
