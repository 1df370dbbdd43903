"""Lines that are slow but alive: all rows arrive once, no connection is taken for lost, and INFO shows what is on its way.

``--rounds`` makes stalls as long as they are in practice.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from slow_lines import SlowLine
from trail_kit import read_all
from two_homes import TwoHomes, path_pid

from ggshell.groups.launch import MEMORY_SETTINGS

MEGABYTE = 1 << 20
FREED_MEMORY = int(MEMORY_SETTINGS["MALLOC_TRIM_THRESHOLD_"])
"""The bytes that a process may keep after it has freed them."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHomes]:
    """The tests of this file share two homes."""
    found = TwoHomes(tmp_path_factory.mktemp("slow"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def shared(homes: TwoHomes) -> Iterator[SlowLine]:
    """A line that path DP1 has used since before the first test, over one connection."""
    found = SlowLine(homes.target.port)
    homes.trust(found.port)
    homes.write(20)
    homes.start_path(found.port)
    homes.until_equal()
    yield found
    found.close()


@pytest.fixture
def line(homes: TwoHomes, shared: SlowLine) -> Iterator[SlowLine]:
    """The line as each test finds it: without delay. Each leaves the same connection, and all rows at the target."""
    connections = shared.connections
    yield shared
    shared.delay, shared.jitter, shared.bandwidth = 0.0, 0.0, 0
    homes.until_equal()
    assert shared.connections == connections
    assert "GGS-00950" not in homes.report()


def shown(homes: TwoHomes, label: str) -> float:
    """The number that INFO shows after a label; -1 before there is one."""
    found = re.search(rf"{label} +([\d,.]+)", homes.run("INFO DISTPATH dp1"))
    return float(found[1].replace(",", "")) if found else -1.0


def memory_of(pid: int) -> int:
    """The resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_a_long_way_with_jitter_is_measured(homes: TwoHomes, line: SlowLine) -> None:
    line.delay, line.jitter = 0.2, 0.1
    for _ in range(3):
        homes.write(20)
    homes.until_equal()
    until("the round trip is that of the line", lambda: 400 <= shown(homes, "Round Trip") < 2000)
    until("nothing is on its way", lambda: shown(homes, "In Flight") == 0)


def test_a_narrow_line_carries_everything_and_shows_what_waits(homes: TwoHomes, line: SlowLine) -> None:
    line.bandwidth = MEGABYTE // 4
    before, had = len(homes.rows()), line.carried
    homes.write(30, rows=1000)
    until("bytes are on their way", lambda: shown(homes, "In Flight") > 0)
    assert shown(homes, "In Flight") <= homes.read.file(0).stat().st_size
    until("some rows have arrived", lambda: len(homes.rows()) > before)
    assert len(homes.rows()) < len(read_all(homes.read)), "rows are shown while others are on their way"
    line.bandwidth = MEGABYTE
    homes.until_equal()
    assert line.carried - had > 2 * MEGABYTE
    until("nothing is on its way", lambda: shown(homes, "In Flight") == 0)


def test_a_line_that_stands_still_for_a_time_is_not_lost(
    homes: TwoHomes, line: SlowLine, request: pytest.FixtureRequest
) -> None:
    rounds = int(request.config.getoption("--rounds"))
    for seconds in [10] * rounds or [2]:
        homes.write(100)
        line.stall()
        homes.write(100)
        threading.Event().wait(seconds)
        line.resume()
        homes.until_equal()


def test_a_receiver_that_reads_slowly_leaves_the_memory_of_the_path_alone(homes: TwoHomes, line: SlowLine) -> None:
    """Little more is sent than the network takes; what is more stays in the trail."""
    path = path_pid(homes)
    limit = memory_of(path) + 16 * MEGABYTE + FREED_MEMORY
    line.bandwidth = MEGABYTE
    homes.write(120, rows=200, size=5000)
    until("the network is full", lambda: shown(homes, "In Flight") > 2 * MEGABYTE)
    assert shown(homes, "In Flight") <= 32 * MEGABYTE
    assert memory_of(path) < limit
    line.bandwidth = 0
    homes.until_equal()
    assert memory_of(path) < limit
