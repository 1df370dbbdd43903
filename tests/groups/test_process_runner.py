"""The runner waits for descriptors, time, requests and signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ggshell.clock import FakeClock, SystemClock
from ggshell.groups.control import ControlServer
from ggshell.groups.process_request import request
from ggshell.groups.runner import Runner


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlServer]:
    server = ControlServer(tmp_path / "socket", lambda verb, _: {"verb": verb})
    yield server
    server.close()


@pytest.fixture
def runner(control: ControlServer) -> Iterator[Runner]:
    runner = Runner(control, SystemClock())
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield runner
    runner.close()
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_readable_descriptors_are_returned(runner: Runner) -> None:
    (read_a, write_a), (read_b, write_b) = os.pipe(), os.pipe()
    os.write(write_b, b"!")
    assert runner.wait([read_a, read_b], 10) == {read_b}
    for number in (read_a, write_a, read_b, write_b):
        os.close(number)


def test_the_timeout_ends_the_wait(runner: Runner) -> None:
    assert runner.wait([], 0.01) == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_and_requests_a_stop(runner: Runner, number: signal.Signals) -> None:
    runner.install_signals()
    threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
    begun = time.monotonic()
    runner.wait([], 20)
    assert runner.stop_requested
    assert time.monotonic() - begun < 15


def test_after_a_stop_request_wait_returns_at_once(runner: Runner) -> None:
    runner.stop()
    begun = time.monotonic()
    runner.wait([], 20)
    assert time.monotonic() - begun < 15
    assert not runner.forced
    runner.stop(forced=True)
    assert runner.forced


def test_requests_are_answered_while_waiting(runner: Runner, control: ControlServer) -> None:
    answers: list[dict[str, object]] = []
    asking = threading.Thread(target=lambda: answers.append(request(str(control.path), "STATUS")))
    asking.start()
    while not answers and asking.is_alive():
        runner.wait([], 0.05)
    asking.join()
    assert answers == [{"verb": "STATUS"}]


def test_periodic_work_follows_the_clock(control: ControlServer) -> None:
    clock = FakeClock()
    runner = Runner(control, clock)
    done: list[float] = []
    runner.every(10, lambda: done.append(clock.steady()))
    for _ in range(5):
        runner.wait([], 0)
        clock.advance(6)
    runner.close()
    assert done == [12, 24]


def test_periodic_work_shortens_the_wait(runner: Runner) -> None:
    done: list[bool] = []
    runner.every(0.02, lambda: done.append(True))
    begun = time.monotonic()
    runner.wait([], 20)
    runner.wait([], 0)
    assert done
    assert time.monotonic() - begun < 15
