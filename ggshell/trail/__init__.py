"""Trails: the durable queue between processes, in GoldenGate's layout (FORMAT.md states every byte).

Whole batches go in and out through ``TrailWriter`` and ``TrailReader``; ``decode_record`` is for looking at one record.
"""

from ggshell.trail.fileheader import COMPATIBILITY, FileHeader, Producer, decode_header
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.record import Record, decode_record
from ggshell.trail.sealing import Keys, Protection
from ggshell.trail.times import read_position_time
from ggshell.trail.writer import TrailWriter, WriterOptions

__all__ = [
    "COMPATIBILITY",
    "FileHeader",
    "Keys",
    "Producer",
    "Protection",
    "Record",
    "TrailName",
    "TrailReader",
    "TrailWriter",
    "WriterOptions",
    "decode_header",
    "decode_record",
    "read_position_time",
]
