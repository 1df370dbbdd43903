"""The memory of a process of the chain, as the system counts it: the most that it has had, and what it has now."""

from __future__ import annotations

import re
from pathlib import Path

from benches.ground import Failed

from faultruns.chain import Chain
from ggshell.home.process_file import read_process_file

MEASURED = ("Extract", "Replicat")


def peak_megabytes(ground: Chain, member: str) -> int:
    """The peak of a process's resident memory. Raises Failed when it does not run."""
    return kilobytes(proc_folder(ground, member), "VmHWM") >> 10


def proc_folder(ground: Chain, member: str) -> Path:
    """Where the system tells about a process. Raises Failed when it does not run."""
    entry = read_process_file(ground.path(member))
    if entry is None:
        raise Failed(f"{member} does not run\n{ground.reports()}")
    return Path("/proc") / str(entry.pid)


def kilobytes(folder: Path, field: str) -> int:
    """A size in the status of a process. Raises Failed if the system does not know it."""
    found = re.search(rf"{field}:\s+(\d+) kB", (folder / "status").read_text())
    if found is None:
        raise Failed(f"the system has no {field} in {folder / 'status'}")
    return int(found[1])


def most_memory(ground: Chain) -> int:
    """The larger of the peaks of Extract and Replicat."""
    return max(peak_megabytes(ground, member) for member in MEASURED)


def require_at_most(ground: Chain, megabytes: int) -> None:
    """Raises Failed when Extract or Replicat has had more memory than that."""
    for member in MEASURED:
        peak = peak_megabytes(ground, member)
        if peak > megabytes:
            raise Failed(f"{member} took {peak} MB, more than {megabytes}")
