"""The network between two homes fails, and so do their processes: every row arrives once. ``--rounds`` makes it longer."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from namespaces import Cable, DistantHomes, LoopbackCable
from processes import until, until_state
from two_homes import TwoHomes, path_pid, service_pid

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistantHomes]:
    found = DistantHomes(tmp_path_factory.mktemp("distant"))
    found.write(20)
    found.start_path()
    found.until_equal()
    yield found
    found.close()


@pytest.fixture
def cable(distant: DistantHomes) -> Cable | LoopbackCable:
    return distant.cable


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--rounds"))


@contextmanager
def load(homes: TwoHomes) -> Iterator[threading.Event]:
    """Write transactions all the time; the event is one to wait with."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.05):
            homes.write(20)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield ended
    finally:
        ended.set()
        thread.join()


def test_a_cable_that_is_out_for_a_time_loses_nothing(
    distant: DistantHomes, cable: Cable | LoopbackCable, rounds: int
) -> None:
    for seconds in [60] * rounds or [3]:
        with load(distant) as pause:
            cable.down()
            pause.wait(seconds)
            cable.up()
        distant.until_equal(120)


def test_a_receiver_that_ends_while_the_cable_is_out_is_found_again(
    distant: DistantHomes, cable: Cable | LoopbackCable, rounds: int
) -> None:
    """The sender gets no reset: its connection is half open until the cable is in again, or until it has waited in vain."""
    for seconds in [30] * rounds or [1]:
        with load(distant) as pause:
            cable.down()
            os.kill(service_pid(distant), signal.SIGKILL)
            pause.wait(seconds)
            distant.target.run("START SERVICE")
            cable.up()
        distant.until_equal(120)


def test_a_sender_whose_machine_is_gone_is_noticed_although_nothing_was_on_the_line(
    distant: DistantHomes, cable: Cable | LoopbackCable, rounds: int
) -> None:
    """The operating system of the target asks the other machine, first after at most 15 seconds."""
    until("the path is connected", lambda: "Status CONNECTED" in distant.target.run("INFO RECVPATH ./dirdat/da"))
    waits = keepalive_seconds(service_pid(distant), distant.target.port)
    assert waits, "a connection has no keepalive timer"
    assert max(waits) <= 15
    for _ in range(rounds):
        if isinstance(cable, LoopbackCable):
            break  # the proxy is on this machine, which answers
        cable.down()
        until("the end is noticed", lambda: "NOT CONNECTED" in distant.target.run("INFO RECVPATH ./dirdat/da"), 40)
        cable.up()
        distant.until_equal(120)


def keepalive_seconds(pid: int, port: int) -> list[float]:
    """For each connection of a process at a port that has nothing to send: the seconds until the other side is asked."""
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    open_here = [each for each in lines if each[3] == "01" and int(each[1].partition(":")[2], 16) == port]
    timers = [each[5].split(":") for each in open_here]
    return [int(ticks, 16) / os.sysconf("SC_CLK_TCK") for kind, ticks in timers if kind == "02"]


def test_small_packets_carry_large_frames(distant: DistantHomes, cable: Cable | LoopbackCable) -> None:
    cable.mtu(576)
    try:
        distant.write(20, rows=3000)
        distant.until_equal(120)
    finally:
        cable.mtu(1500)


def test_processes_that_are_killed_under_load_lose_nothing(distant: DistantHomes, rounds: int) -> None:
    chance = random.Random(f"network {rounds}")
    source = Home(distant.source)
    with load(distant) as pause:
        for _ in range(rounds or 4):
            pause.wait(chance.uniform(0.0, 0.5))
            victim = chance.choice(("path", "service", "Manager", "all"))
            if victim in ("Manager", "all"):
                manager = read_process_file(source.manager)
                assert manager is not None
                with suppress(ProcessLookupError):
                    os.kill(manager.pid, signal.SIGKILL)
            if victim in ("service", "all"):
                os.kill(service_pid(distant), signal.SIGKILL)
            if victim in ("path", "all"):
                os.kill(path_pid(distant), signal.SIGKILL)
                until_state(source, "DP1", GroupKind.PATH, ProcessState.ABENDED)
                distant.run("START DISTPATH dp1")
            if victim in ("service", "all"):
                distant.target.run("START SERVICE")
    distant.until_equal(120)


def test_a_full_disk_of_the_target_stops_the_path_and_space_continues_it(tmp_path: Path) -> None:
    folder = tmp_path / "target" / "dirdat"
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "ggshell", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a file system in memory is not permitted: {mounted.stderr.strip()}")
    try:
        homes = TwoHomes(tmp_path)
        try:
            homes.write(20)
            homes.start_path()
            homes.until_equal()
            homes.write(20, rows=1000)
            until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
            for statement in ("INFO DISTPATH dp1", "STATUS DISTPATH dp1"):
                assert re.search(r"ABENDED(\n.*)*GGS-00303 .*No space left", homes.run(statement))
            subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
            homes.run("START DISTPATH dp1")
            homes.until_equal()
        finally:
            homes.close()
    finally:
        until("the file system is free", lambda: subprocess.run(["umount", folder], check=False).returncode == 0)
