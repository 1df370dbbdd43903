"""The waiting place of a process: its descriptors, its control socket and its signals, in one poll."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Sequence

from ggshell.clock import Clock
from ggshell.process.control import ControlServer


class Runner:
    """Waits, answers requests meanwhile, and knows when to stop.  SIGTERM and SIGINT ask for a graceful end."""

    def __init__(self, control: ControlServer, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self.stop_requested = False
        self.forced = False
        self._periodic: list[tuple[float, float, Callable[[], object]]] = []
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)

    def install_signals(self) -> None:
        """Only in a process of its own: the main thread's signals."""
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def stop(self, *, forced: bool = False) -> None:
        """Ask the loop to end at its next boundary."""
        self.stop_requested = True
        self.forced = self.forced or forced

    def every(self, seconds: float, action: Callable[[], object]) -> None:
        """Call something at an interval, from ``wait``."""
        self._periodic.append((self._clock.steady() + seconds, seconds, action))

    def wait(self, descriptors: Sequence[int], timeout: float) -> set[int]:
        """Wait for a descriptor, a request, a signal or the time; answers requests.  The readable ones of ``descriptors``.

        Does not wait once a stop is asked for.
        """
        due = min((moment for moment, _, _ in self._periodic), default=None)
        if due is not None:
            timeout = min(timeout, due - self._clock.steady())
        poll = select.poll()
        for number, events in self._control.interests().items():
            poll.register(number, events)
        for number in (*descriptors, self._read_end):
            poll.register(number, select.POLLIN)
        ready = {number for number, _ in poll.poll(0 if self.stop_requested else max(0.0, timeout) * 1000)}
        if self._read_end in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read_end, 4096)
        self._control.serve(ready)
        self._run_periodic()
        return ready.intersection(descriptors)

    def close(self) -> None:
        """Give signals and descriptors back."""
        with contextlib.suppress(ValueError):  # not the main thread: then they were never ours
            signal.set_wakeup_fd(-1)
        os.close(self._read_end)
        os.close(self._write_end)

    def _on_signal(self, number: int, frame: object) -> None:
        self.stop_requested = True

    def _run_periodic(self) -> None:
        now = self._clock.steady()
        for number, (moment, seconds, action) in enumerate(self._periodic):
            if now >= moment:
                self._periodic[number] = (now + seconds, seconds, action)
                action()
