"""``memory``: the largest memory of Extract and Replicat while one transaction of a million rows goes through them."""

from __future__ import annotations

import re
from pathlib import Path

from benches.figures import Figure, less_is_better
from benches.ground import Failed, ground

LIMIT_MB = 300.0


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = 100_000 if quick else 1_000_000
    with ground() as place:
        place.extract("ext", "./dirdat/ea")
        place.checkpoint_table()
        place.replicat("rep", "./dirdat/ea")
        place.obey("START EXTRACT ext", "START REPLICAT rep")
        last = place.fill(1, rows)
        place.wait_for_row("bench.rows", last)
        peaks = [
            ("Extract", peak(place.process_id("ext", "pce"))),
            ("Replicat", peak(place.process_id("rep", "pcr"))),
        ]
    case = f"{rows:,}-row transaction"
    return [
        less_is_better("memory", f"{name}, {case}", "MB", [peak], [LIMIT_MB], "the limit", 1.0) for name, peak in peaks
    ]


def peak(process: int) -> float:
    """The high-water mark of a process's resident memory, in MB."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        raise Failed(
            "this system has no /proc to read a process's peak memory from, or the process has ended"
        ) from None
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if found is None:
        raise Failed(f"/proc/{process}/status has no peak")
    return int(found[1]) / 1024
