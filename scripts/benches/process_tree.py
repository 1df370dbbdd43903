"""Memory and processor time of a process and of all that descend from it: a Replicat, its Java and Java's Python workers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from benches.ground import Failed
from benches.memory import peak

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def family(process: int) -> set[int]:
    """The process and its descendants that run now."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            state, parent, *_ = stat.read_text().rpartition(")")[2].split()
            if state != "Z":  # one that has ended has no memory
                parents[int(stat.parent.name)] = int(parent)
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def peaks(processes: set[int]) -> float:
    """The high-water marks of the memory of processes together, in MB."""
    total = 0.0
    for each in processes:
        with suppress(Failed):  # it ended meanwhile
            total += peak(each)
    return total


def megabytes(processes: set[int]) -> float:
    """The memory of processes now, in MB; what several of them share counts once (PSS)."""
    total = 0
    for each in processes:
        with suppress(OSError):  # it ended meanwhile
            total += int(Path(f"/proc/{each}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
    return total / 1024


def cpu_seconds(process: int) -> float:
    """The processor time of the family so far, with the children that have ended and were waited for."""
    total = 0
    for each in family(process):
        with suppress(OSError):  # it ended meanwhile
            total += sum(map(int, Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return total / _TICKS
