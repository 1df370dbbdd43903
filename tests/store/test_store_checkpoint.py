"""Checkpoint files: what is written is read, and every damage is noticed."""

from __future__ import annotations

import checkpoints
import pytest

from ggshell.errors import StoreError
from ggshell.store import checkpoint as store
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, StopStatus, WriteCheckpoint
from ggshell.store.home import Home
from ggshell.types import LogPosition, TrailPosition

FULL = Checkpoint(
    "EXT1",
    GroupType.EXTRACT,
    ReadCheckpoint(SourceType.LOG, "", LogPosition.of_lsn(5), 1, LogPosition.of_lsn(6), 2, LogPosition.of_lsn(7), 3),
    (WriteCheckpoint("./dirdat/ea", False, 10, TrailPosition(3, 400), 4), WriteCheckpoint("./dirdat/eb", True)),
    description="an Extract — with “odd” words",
    stop=StopStatus.GRACEFUL,
    latest_csn="00000000/050056B8",
    options={"slot": "ggs_ext1", "watch": {"retained": 1}},
)


@pytest.mark.parametrize(
    "checkpoint",
    [FULL, checkpoints.extract("E"), checkpoints.path("P"), checkpoints.replicat("R")],
    ids=lambda c: c.group,
)
def test_what_is_saved_is_loaded(home: Home, checkpoint: Checkpoint) -> None:
    path = home.checkpoint(checkpoint.group, checkpoint.type)
    store.save(path, checkpoint)
    assert store.load(path) == checkpoint


def test_the_checkpoint_before_is_kept(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupType.EXTRACT)
    for number in range(3):
        store.save(path, FULL._replace(updated=number))
    assert store.load(path).updated == 2
    assert store.load(path.with_name(path.name + ".previous")).updated == 1
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["EXT1.cpe", "EXT1.cpe.previous"]


def test_every_flipped_byte_is_noticed(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupType.EXTRACT)
    store.save(path, FULL)
    data = path.read_bytes()
    for place in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            damaged = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
            with pytest.raises(StoreError, match=r"EXT1\.cpe"):
                store.decode(damaged, path)


def test_every_cut_is_noticed(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupType.EXTRACT)
    store.save(path, FULL)
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(StoreError):
            store.decode(data[:length], path)


def test_a_missing_checkpoint_is_named(home: Home) -> None:
    with pytest.raises(StoreError, match=r"NONE\.cpr"):
        store.load(home.checkpoint("none", GroupType.REPLICAT))


def test_a_newer_version_is_refused(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupType.EXTRACT)
    store.save(path, FULL)
    with pytest.raises(StoreError, match="version 2"):
        store.decode(path.read_bytes().replace(b"GGSCHK 1", b"GGSCHK 2", 1), path)
