"""Trails that other homes send are found in every folder of a home, also when folders change between two looks."""

from __future__ import annotations

import os
from pathlib import Path

from ggshell.cli.sender_files import _KNOWN, sent_trails


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
