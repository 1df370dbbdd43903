"""``growth``: the time of statements and processes with 1, 10 and 100 times as many objects.

The peer of a size is what n log n would make of the size before it, so a ratio below 1 means that the cost grows faster.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benches import growth_delivery
from benches.figures import LIMIT_NAME, Figure, less_is_better
from benches.ground import Failed, Ground, ggshell, ground
from benches.language import script
from benches.trail import write_trail
from ggshell.connectors.oracle_redo.definitions import Definitions, read_definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import RedoLog
from ggshell.demo.redo_workload import write_definitions
from ggshell.demo.redo_writer import RedoWriter
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.monitoring import lag_archive
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.pipeline.heartbeat.row import Beat
from ggshell.record.transaction import Completed
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName
from ggshell.types import Csn, LogPosition

GOAL = 0.8
"""A little below 1, as single rounds differ."""
FIRST = "the smallest"
LIMITS = {"INFO ALL": 0.5, "INFO TRANDATA": 2.0, "check": 0.3}
"""Seconds that the largest size may take."""
_BEGINNING = LogPosition(0, 0, 0)
_FILE_ROWS = 200


def run(rounds: int, quick: bool) -> list[Figure]:
    part = 10 if quick else 1
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as name:
        folder = Path(name)
        return [
            *_measured("INFO ALL", "groups", _sizes(500, part), rounds, lambda count: _info_all(folder, count)),
            *_measured("check", "lines", _sizes(10_000, part), rounds, lambda count: _check(folder, count)),
            *_measured("trail scan", "trail files", _sizes(10_000, part), rounds, lambda count: _scan(folder, count)),
            *_measured(
                "Extract", "open transactions", _sizes(10_000, part), rounds, lambda count: _capture(folder, count)
            ),
            *_measured(
                "lag archive", "heartbeats", _sizes(100_000, part), rounds, lambda count: _heartbeats(folder, count)
            ),
            *_with_servers(rounds, part),
        ]


def _sizes(largest: int, part: int) -> tuple[int, int, int]:
    least = max(2, largest // part // 100)
    return least, 10 * least, 100 * least


def _measured(
    name: str, unit: str, sizes: Sequence[int], rounds: int, prepare: Callable[[int], Callable[[], float]]
) -> Iterator[Figure]:
    """One figure for each size; ``prepare`` makes so many objects and returns what measures the seconds."""
    before: tuple[int, list[float]] | None = None
    for size in sizes:
        measure = prepare(size)
        seconds = [measure() for _ in range(rounds)]
        case = f"{name}, {size:,} {unit}"
        if before is None:
            yield less_is_better("growth", case, "s", seconds, seconds, FIRST, None)
        else:
            factor = size * math.log(size) / (before[0] * math.log(before[0]))
            expected = [each * factor for each in before[1]]
            yield less_is_better("growth", case, "s", seconds, expected, f"n log n of {before[0]:,}", GOAL)
        before = size, seconds
    if name in LIMITS:
        yield less_is_better("growth", f"{name}, {sizes[-1]:,} {unit}", "s", seconds, [LIMITS[name]], LIMIT_NAME, 1.0)


def _seconds(words: Sequence[str], *codes: int) -> float:
    began = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    taken = time.perf_counter() - began
    if done.returncode not in (0, *codes):
        raise Failed(f"{words}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return taken


def _info_all(folder: Path, count: int) -> Callable[[], float]:
    home = Home(folder / f"home{count}")
    home.ensure()
    _seconds([ggshell(), "--home", str(home.root), "-c", "ADD EXTRACT first, EXTTRAILSOURCE ./dirdat/ea"])
    first = checkpoints.load(home.checkpoint("FIRST", GroupKind.EXTRACT))
    for number in range(1, count):
        name = f"E{number:04}"
        checkpoints.save(home.checkpoint(name, GroupKind.EXTRACT), first._replace(group=name))
    return lambda: _seconds([ggshell(), "--home", str(home.root), "-c", "INFO ALL"])


def _check(folder: Path, count: int) -> Callable[[], float]:
    path = folder / f"{count}.oby"
    path.write_text(script(count))
    return lambda: _seconds([ggshell(), "check", str(path)], 3)


def _scan(folder: Path, count: int) -> Callable[[], float]:
    name = TrailName(folder / f"trail{count}", "ea")
    name.folder.mkdir()
    write_trail(name, _FILE_ROWS * count, max_bytes=_FILE_ROWS * 200)

    def scan() -> float:
        began = time.perf_counter()
        rows = sum(
            len(batch) for seqno in name.sequences() for batch in read_columnar(name.file(seqno), ["table", "op"])
        )
        if rows != _FILE_ROWS * count:
            raise Failed(f"{rows} rows were read instead of {_FILE_ROWS * count}")
        return time.perf_counter() - began

    return scan


def _heartbeats(folder: Path, count: int) -> Callable[[], float]:
    """Archive heartbeats of one a second, then compute the percentiles that LAG REPORT shows."""
    beats = [_heartbeat(1_767_225_600_000_000 + number * 1_000_000) for number in range(count)]

    def archive() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            began = time.perf_counter()
            for first in range(0, count, lag_archive.MOST_ROWS):
                lag_archive.write(Path(name), "REP", beats[first : first + lag_archive.MOST_ROWS])
            lag_archive.spreads(Path(name), "DAY", 0)
            return time.perf_counter() - began

    return archive


def _heartbeat(sent: int) -> lag_archive.ArchiveRow:
    beat = Beat("south", sent, "north", "EXT", None, "REP", sent, sent + 1000, None, sent + 2000)
    return lag_archive.ArchiveRow(beat, sent + 3000)


def _capture(folder: Path, count: int) -> Callable[[], float]:
    """Transactions that are all open at the same time, with three rows each."""
    redo = folder / f"redo{count}"
    writer = RedoWriter(redo, owner="BENCH")
    writer.time = 1_767_225_600_000_000
    xids = [writer.begin() for _ in range(count)]
    for turn in range(3):
        for number, xid in enumerate(xids):
            writer.insert(xid, "ROWS", {"ID": str(turn * count + number), "NOTE": "x" * 64})
    for xid in xids:
        writer.commit(xid)
    writer.close()

    def capture() -> float:
        definitions = Definitions(read_definitions(write_definitions(redo)), lambda _: ())
        began = time.perf_counter()
        log = RedoLog(
            open_rows(f"redo://{redo}", _BEGINNING), _BEGINNING, lambda _: True, definitions, lambda code, text: None
        )
        with _captured(Capture(log, TransactionCache(256 << 20, redo / "spill"), Completed(Csn(0, False)))) as stream:
            while stream.read() is not None or not stream.drained:
                continue
        return time.perf_counter() - began

    return capture


@contextmanager
def _captured(stream: Capture) -> Iterator[Capture]:
    try:
        yield stream
    finally:
        stream.close()


def _with_servers(rounds: int, part: int) -> Iterator[Figure]:
    with ground() as place:
        yield from _measured(
            "INFO TRANDATA", "tables", _sizes(10_000, part), rounds, lambda count: _trandata(place, count)
        )
        for unit, sizes, shape in (
            ("tables", _sizes(10_000, part), growth_delivery.tables),
            ("columns", (16, 160, 1600), growth_delivery.columns),
        ):
            yield from _measured("Extract", unit, sizes, rounds, _extract(place, shape, rounds))
            yield from _measured("Replicat", unit, sizes, rounds, _replicat(place, shape))
        yield from _measured("COMPARE", "rows", _sizes(2_000_000, part), rounds, lambda count: _compare(place, count))


def _extract(
    place: Ground, shape: Callable[[int], growth_delivery.Shape], rounds: int
) -> Callable[[int], Callable[[], float]]:
    return lambda count: growth_delivery.extract(place, shape(count), rounds)


def _replicat(place: Ground, shape: Callable[[int], growth_delivery.Shape]) -> Callable[[int], Callable[[], float]]:
    return lambda count: growth_delivery.replicat(place, shape(count))


def _trandata(place: Ground, count: int) -> Callable[[], float]:
    with place.connect("north") as source:
        source.execute(f"CREATE SCHEMA t{count} AUTHORIZATION ggadmin".encode())
        for first in range(0, count, 1000):
            source.execute(
                f"DO $$ BEGIN FOR n IN {first} .. {min(count, first + 1000) - 1} LOOP"
                f" EXECUTE format('CREATE TABLE t{count}.t%s (id int PRIMARY KEY, note text)', n);"
                " END LOOP; END $$".encode()
            )
    statements = f"DBLOGIN USERIDALIAS north\nINFO TRANDATA t{count}.*"
    return lambda: _seconds([ggshell(), "--home", str(place.home), "-c", statements])


def _compare(place: Ground, count: int) -> Callable[[], float]:
    table = f"bench.c{count}"
    for name in ("north", "south"):
        with place.connect(name) as connection:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT n AS id, repeat('x', 64) AS note FROM generate_series(1, {count}) n;"
                f" ALTER TABLE {table} ADD PRIMARY KEY (id); ALTER TABLE {table} OWNER TO ggadmin".encode()
            )
            connection.execute(f"VACUUM ANALYZE {table}".encode())
    return lambda: _seconds([ggshell(), "--home", str(place.home), "-c", f"COMPARE north TO south, TABLE {table}"])
