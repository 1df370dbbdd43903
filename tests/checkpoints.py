"""Checkpoints made by hand, for tests that need a group without a database."""

from __future__ import annotations

from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.store.home import Home
from ggshell.types import TrailPosition


def extract(group: str, trail: str = "./dirdat/ea") -> Checkpoint:
    """An Extract on a log that writes one trail."""
    return Checkpoint(group, GroupType.EXTRACT, ReadCheckpoint(SourceType.LOG), (WriteCheckpoint(trail),), created=1)


def path(group: str, source: str = "./dirdat/ea", target: str = "./dirdat/pa") -> Checkpoint:
    """A distribution path from one trail to another."""
    read = ReadCheckpoint(SourceType.TRAIL, source, *[TrailPosition(0, 0), 0] * 3)
    return Checkpoint(group, GroupType.PATH, read, (WriteCheckpoint(target, remote=True),), created=1)


def replicat(group: str, trail: str = "./dirdat/ea", seqno: int = 0) -> Checkpoint:
    """A Replicat that stands in a file of a trail."""
    read = ReadCheckpoint(SourceType.TRAIL, trail, *[TrailPosition(seqno, 100), 0] * 3)
    return Checkpoint(group, GroupType.REPLICAT, read, created=1)


def save(home: Home, checkpoint: Checkpoint) -> Checkpoint:
    """Write a group's checkpoint file, as ADD does."""
    home.ensure()
    checkpoints.save(home.checkpoint(checkpoint.group, checkpoint.type), checkpoint)
    return checkpoint
