"""``cluster``: queries about a trail and a lag archive of 10 GB each on two executors of Spark, compared with one
executor.

Each executor is a process with one core (``local-cluster``: a standalone cluster that the driver starts). And how long the
driver needs to plan the query about the trail, before any executor reads from it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benches.beats import write_beats
from benches.figures import LIMIT_NAME, Figure, less_is_better
from benches.ground import Failed
from benches.trail import write_trail
from ggshell.query.engines import Engines
from ggshell.query.queries import counts, lag
from ggshell.query.queries.heartbeats import Heartbeats, archive
from ggshell.query.queries.trails import QueriedTrails, trails
from ggshell.query.settings import EngineChoice, QuerySettings
from ggshell.query.trail_read import SPLIT_BYTES, plan
from ggshell.trail.name import TrailName

BYTES: Final = 10 << 30
QUICK_BYTES: Final = 64 << 20
FILE_BYTES: Final = 500 << 20
"""Of a trail file."""
BEATS: Final = 5_000_000
"""Heartbeats of a file of the archive."""
QUICK_BEATS: Final = 100_000
EXECUTORS: Final = (1, 2)


def run(rounds: int, quick: bool) -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    size = QUICK_BYTES if quick else BYTES
    try:
        trail, records = _trail(folder, size)
        home, beats = _archive(folder / "lag", size, QUICK_BEATS if quick else BEATS)
        planned = [_planned(trail) for _ in range(rounds)]
        bare = _without_indexes(trail, folder / "bare")
        probed = [_planned(bare) for _ in range(rounds)]
        counted, reported = dict[int, list[float]](), dict[int, list[float]]()
        for executors in EXECUTORS:
            settings = QuerySettings(EngineChoice.SPARK, master=f"local-cluster[{executors},1,1024]", memory="1g")
            engines = Engines(settings, folder / f"{executors}.log")
            try:
                asked = trails([str(trail)], folder, engines)
                _count(asked)  # the executors' Python processes start and import what they need
                counted[executors] = _seconds(rounds, records, partial(_count, asked))
                sources = Heartbeats((archive(0, "here", home),), engines)
                reported[executors] = _seconds(rounds, beats, partial(_report, sources))
            finally:
                engines.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gigabytes = f"{size / 2**30:.2g} GB"
    return [
        less_is_better("cluster", f"TRAIL COUNT, {gigabytes}", "s", counted[2], counted[1], "one executor", 1.6),
        less_is_better("cluster", f"LAG REPORT, {gigabytes}", "s", reported[2], reported[1], "one executor", 1.6),
        less_is_better("cluster", f"planning, {gigabytes} of trail", "s", planned, [0.5], LIMIT_NAME, 1.0),
        less_is_better("cluster", "the same without the indexes of files", "s", probed, [0.5], LIMIT_NAME, 1.0),
    ]


def _count(trail: QueriedTrails) -> int:
    return sum(row[3] for row in counts.count(trail).rows)


def _report(sources: Heartbeats) -> int:
    return sum(window.beats for window in lag.windows(sources, "DAY"))


def _trail(folder: Path, size: int) -> tuple[TrailName, int]:
    """A trail of at least so many bytes, and the number of its records."""
    sample = TrailName(folder, "sa")
    write_trail(sample, 10_000)
    records = size // (sample.file(0).stat().st_size // 10_000) // 1000 * 1000 + 1000
    name = TrailName(folder, "bg")
    write_trail(name, records, min(FILE_BYTES, size // 4))
    return name, records


def _archive(folder: Path, size: int, rows: int) -> tuple[Path, int]:
    """An archive of at least so many bytes, and the number of its heartbeats."""
    written = beats = 0
    while written < size:
        written += write_beats(folder, rows, beats).stat().st_size
        beats += rows
    return folder, beats


def _without_indexes(trail: TrailName, folder: Path) -> TrailName:
    """The same files in a folder that has no indexes of them."""
    folder.mkdir()
    name = TrailName(folder, trail.prefix)
    for seqno in trail.sequences():
        name.file(seqno).symlink_to(trail.file(seqno))
    return name


def _planned(trail: TrailName) -> float:
    """The seconds in which the trail is divided into the tasks' splits."""
    files = [str(trail.file(seqno)) for seqno in trail.sequences()]
    began = time.perf_counter()
    if len(plan(files, SPLIT_BYTES, up_to_cut=True)) < len(files):
        raise Failed("the trail was not divided into splits")
    return time.perf_counter() - began


def _seconds(rounds: int, wanted: int, ask: Callable[[], int]) -> list[float]:
    """The seconds of each round."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        if (counted := ask()) != wanted:
            raise Failed(f"{counted} rows were counted, not {wanted}")
        found.append(time.perf_counter() - began)
    return found
