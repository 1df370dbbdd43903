"""Trails: the durable queue between processes, in GoldenGate's layout (FORMAT.md states every byte)."""

from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader, read_position_time
from ggshell.trail.writer import TrailWriter

__all__ = ["Producer", "TrailName", "TrailReader", "TrailWriter", "read_position_time"]
