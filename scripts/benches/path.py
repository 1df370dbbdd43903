"""``path``: trails from one home to another over TLS, compared with plain sockets that copy the same files.

Every ratio is shown for each round; the worst round is judged. The time of a copy begins when the connection is ready and ends
when the last byte is durable. Latency is that of the bench ``latency``, with and without a path in between.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benches.extract import read_log
from benches.figures import Figure, alternate, less_is_better, more_is_better
from benches.ground import ground
from benches.many_paths import megabytes_of_many
from benches.memory import peak
from benches.path_latency import latency_figure
from benches.trail import write_trail
from benches.two_homes import TwoHomes, delayed_line, plain_copy, size_of, two_homes
from ggshell.network.frames import LONGEST_DATA, Compression

FILE_BYTES = 100 << 20
DELAY = 50
"""Milliseconds each way."""
WINDOW = 32 << 20
"""Bytes that the line with a delay has under way."""
MB = 1e6
_NUMBERS = itertools.count()
"""Of the target trails: one that was removed cannot be written again."""


class Load(NamedTuple):
    """``rows``: of the trail that is copied; ``few``: of a small one; ``logged``: of the Extract; ``paths``: into one receiver,
    each of which sends ``each`` bytes."""

    rows: int
    few: int
    logged: int
    paths: int
    each: int


FULL = Load(4_000_000, 500_000, 1_000_000, 100, 16 << 20)
QUICK = Load(2_000_000, 100_000, 100_000, 20, 4 << 20)
"""A copy takes a second or two: with fewer rows, the first frames on a slow start would decide."""


def run(rounds: int, quick: bool) -> list[Figure]:
    load = QUICK if quick else FULL
    with two_homes() as homes:
        write_trail(homes.trail("ea"), load.rows, FILE_BYTES)
        write_trail(homes.trail("fe"), load.few, FILE_BYTES)
        few = _peaks_of(homes, "fe")
        _warm_up(homes)
        ours, loopback = _loopback(homes, rounds)
        figures = [loopback]
        figures += _memory(few, _peaks_of(homes, "ea"))
        figures.append(_delayed(homes, rounds))
        figures += _compression(homes, rounds, ours)
        homes.restart_service()
        used = [megabytes_of_many(homes, "ea", load.paths, load.each)]
    figures.append(less_is_better("path", f"{load.paths} paths, service", "MB", used, [400.0], "the limit", 1.0))
    return [*figures, _beside_extract(rounds, load.logged, ours), latency_figure(rounds, quick)]


def _copied(
    homes: TwoHomes, *options: str, source: str = "ea", port: int = 0, then: Callable[[], None] | None = None
) -> float:
    """Bytes of the trail a second that a new path copies; ``then``: called before the path is stopped."""
    target = f"{next(_NUMBERS):02}"
    homes.add_path("dp1", source, target, *options, port=port)
    taken = homes.copied_in("dp1", source, target)
    if then is not None:
        then()
    homes.stop("dp1", target)
    return size_of(homes.trail(source)) / taken


def _warm_up(homes: TwoHomes) -> None:
    """Copy once each way: memory and disk blocks that the machine has not used before are several times slower."""
    _copied(homes)
    plain_copy(homes, "ea", secure=True)


def _loopback(homes: TwoHomes, rounds: int) -> tuple[list[float], Figure]:
    size = size_of(homes.trail("ea"))
    ours, peer = alternate(
        rounds,
        lambda _: _copied(homes) / MB,
        lambda _: size / plain_copy(homes, "ea", secure=True) / MB,
    )
    return ours, more_is_better("path", "loopback, TLS", "MB/s", ours, peer, "a plain TLS socket", 0.7)


def _peaks_of(homes: TwoHomes, source: str) -> list[float]:
    """The largest memory of a path that copies a trail, and of the service until then, in MB."""
    found: list[float] = []
    _copied(
        homes,
        source=source,
        then=lambda: found.extend([peak(homes.path_process("dp1")), peak(homes.service_process())]),
    )
    return found


def _memory(few: list[float], many: list[float]) -> list[Figure]:
    """What a large trail needs more than a small one: at most twice what a line has under way."""
    growth = [max(1.0, after - before) for before, after in zip(few, many, strict=True)]
    limit = [2 * WINDOW / (1 << 20)]
    return [
        less_is_better("path", "growth of the path", "MB", growth[:1], limit, "twice a window", 1.0),
        less_is_better("path", "growth of the service", "MB", growth[1:], limit, "twice a window", 1.0),
    ]


def _delayed(homes: TwoHomes, rounds: int) -> Figure:
    size = size_of(homes.trail("ea"))

    def ours(_: int) -> float:
        with delayed_line(homes.port, DELAY, WINDOW) as port:
            return _copied(homes, port=port) / MB

    def peer(_: int) -> float:
        return size / plain_copy(homes, "ea", secure=False, milliseconds=DELAY, window=WINDOW) / MB

    found = alternate(rounds, ours, peer)
    return more_is_better("path", f"{DELAY} ms each way", "MB/s", *found, "one plain TCP stream", 0.8)


def _compression(homes: TwoHomes, rounds: int, rates: Sequence[float]) -> list[Figure]:
    """The processor time of zstd for what the path sends in a second, in cores; and the rate with zstd."""
    share = [rate * MB * _seconds_a_byte(homes) for rate in rates]
    sent = [_copied(homes, "TARGET COMPRESSION ON") / MB for _ in range(rounds)]
    return [
        less_is_better("path", "zstd, level 1", "cores", share, [0.5], "the limit", 1.0),
        more_is_better("path", "with zstd", "MB/s", sent, rates, "without", None),
    ]


def _seconds_a_byte(homes: TwoHomes) -> float:
    with homes.trail("ea").file(0).open("rb") as file:
        parts = [file.read(LONGEST_DATA) for _ in range(200)]
    compression = Compression(0)
    began = time.thread_time()
    for part in parts:
        compression.compressed(part)
    return (time.thread_time() - began) / sum(map(len, parts))


def _beside_extract(rounds: int, rows: int, ours: Sequence[float]) -> Figure:
    """The path's rate compared with the bytes a second that Extract writes from the slot."""
    with ground() as place:
        for number in range(rounds):
            place.extract(f"ext{number}", f"./dirdat/e{number}")
        place.fill(rows // 100, 100)
        end = place.end_of_log()
        place.one("north", "SELECT pg_logical_emit_message(true, 'bench', 'end', true)")
        peer = []
        for number in range(rounds):
            taken = read_log(place, f"ext{number}", f"e{number}", end)
            files = place.home.joinpath("dirdat").glob(f"e{number}?????????")
            peer.append(sum(each.stat().st_size for each in files) / taken / MB)
    return more_is_better("path", "compared with Extract", "MB/s", ours, peer, "Extract's trail", 1.0)
