"""The most memory that a process of the chain has had, as the system counts it."""

from __future__ import annotations

import re
from pathlib import Path

from benches.ground import Failed

from faultruns.chain import Chain
from ggshell.home.process_file import read_process_file

MEASURED = ("Extract", "Replicat")


def peak_megabytes(ground: Chain, member: str) -> int:
    """The peak of a process's resident memory. Raises Failed when it does not run."""
    entry = read_process_file(ground.path(member))
    if entry is None:
        raise Failed(f"{member} does not run\n{ground.reports()}")
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{entry.pid}/status").read_text())
    if found is None:
        raise Failed(f"the system does not tell how much memory {member} had")
    return int(found[1]) >> 10


def most_memory(ground: Chain) -> int:
    """The larger of the peaks of Extract and Replicat."""
    return max(peak_megabytes(ground, member) for member in MEASURED)


def require_at_most(ground: Chain, megabytes: int) -> None:
    """Raises Failed when Extract or Replicat has had more memory than that."""
    for member in MEASURED:
        peak = peak_megabytes(ground, member)
        if peak > megabytes:
            raise Failed(f"{member} took {peak} MB, more than {megabytes}")
