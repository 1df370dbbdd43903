"""Builds checkpoints, for tests that need a group without a database."""

from __future__ import annotations

from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.home.home import Home
from ggshell.types import TrailPosition


def extract(group: str, trail: str = "./dirdat/ea") -> Checkpoint:
    """An Extract on a log that writes one trail."""
    return Checkpoint(group, GroupKind.EXTRACT, ReadCheckpoint(SourceType.LOG), (WriteCheckpoint(trail),), created=1)


def path(group: str, source: str = "./dirdat/ea", target: str = "./dirdat/pa") -> Checkpoint:
    """A distribution path from one trail to another."""
    read = ReadCheckpoint(SourceType.TRAIL, source, *[TrailPosition(0, 0), 0] * 3)
    return Checkpoint(group, GroupKind.PATH, read, (WriteCheckpoint(target, remote=True),), created=1)


def replicat(group: str, trail: str = "./dirdat/ea", seqno: int = 0) -> Checkpoint:
    """A Replicat that is positioned in a file of a trail."""
    read = ReadCheckpoint(SourceType.TRAIL, trail, *[TrailPosition(seqno, 100), 0] * 3)
    return Checkpoint(group, GroupKind.REPLICAT, read, created=1)


def save(home: Home, checkpoint: Checkpoint) -> Checkpoint:
    """Write a group's checkpoint file, as ADD does."""
    home.ensure()
    checkpoints.save(home.checkpoint(checkpoint.group, checkpoint.type), checkpoint)
    return checkpoint
