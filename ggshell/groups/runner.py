"""The worker's event loop: waits for descriptors, requests of the control socket and signals in one poll.

While the worker is busy, requests are answered from answers that it published earlier.
"""

from __future__ import annotations

import contextlib
import select
import signal
from collections.abc import Callable, Sequence
from typing import Any

from ggshell.clock import Clock
from ggshell.errors import GgsError, ProcessError
from ggshell.groups.control import PATIENCE_SECONDS, ControlServer, Meanwhile
from ggshell.groups.obstacles import Obstacles

Verb = Callable[[dict[str, Any]], dict[str, Any]]
STOPS = ("STOP", "FORCESTOP")
CONFIRMED = frozenset({"REPORT", "ROLLOVER", "HANDLECOLLISIONS", "NOHANDLECOLLISIONS", "REPORTCOLLISIONS"})
"""Requests that are acknowledged at once; the worker executes them when it can."""
REQUESTS = ("STATUS", "STATS", "SHOWTRANS", "CACHEMGR")
WAITING = ("STATS", "GETLAG")
"""Queries whose answers also report what the process is waiting for."""
LEAST_PATIENCE_SECONDS = 0.05
START_PATIENCE_SECONDS = 3.0
STUCK_SECONDS = 1.0
"""Seconds that one piece of work may take before the process checks what it is waiting for."""


class Runner:
    """Waits for events, answers requests in the meantime, and tracks stop requests.

    SIGTERM and SIGINT request a graceful stop. Any thread can call ``stop`` and read ``busy_since``.
    """

    def __init__(self, control: ControlServer, clock: Clock) -> None:
        self._control = control
        self._clock = clock
        self.stop_requested = False
        self.forced = False
        self.busy_since: float | None = clock.steady()
        """The monotonic time at which the worker's current piece of work began, or None while it waits."""
        self._periodic: list[tuple[float, float, Callable[[], object]]] = []
        self._stopping: Callable[[], None] = lambda: None

    def install_signals(self) -> None:
        """Install the signal handlers; only in the main thread of a separate process.

        The control thread receives the signals even while the worker is in a call that does not return.
        """
        self._control.on_signal(lambda _: self._tell_stop())
        signal.set_wakeup_fd(self._control.signal_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def stop(self, *, forced: bool = False) -> None:
        """Request the loop to stop after the current piece of work."""
        self.stop_requested = True
        self.forced = self.forced or forced
        self._tell_stop()

    def on_stop(self, function: Callable[[], None]) -> None:
        """Set the function that is called, in any thread, when a stop is requested."""
        self._stopping = function

    def every(self, seconds: float, action: Callable[[], object], *, at_once: bool = False) -> None:
        """Call a function at an interval, from ``wait``; ``at_once``: the first time in the next ``wait``."""
        self._periodic.append((self._clock.steady() + (0 if at_once else seconds), seconds, action))

    def wait(self, descriptors: Sequence[int], timeout: float) -> set[int]:
        """Wait for a descriptor, a request, a signal or the timeout; answer requests; return the readable descriptors.

        Does not wait after a stop request.
        """
        if timeout <= 0 and not descriptors:
            ready: set[int] = set()
        else:
            ready = self._poll(descriptors, timeout)
        if self._control.asked in ready or self._control.waiting:
            self._control.work()
        self._run_periodic()
        return ready.intersection(descriptors)

    def close(self) -> None:
        """Restore the signal handling."""
        with contextlib.suppress(ValueError):  # not the main thread: no signal handling was installed
            signal.set_wakeup_fd(-1)

    def _poll(self, descriptors: Sequence[int], timeout: float) -> set[int]:
        due = min((moment for moment, _, _ in self._periodic), default=None)
        if due is not None:
            timeout = min(timeout, due - self._clock.steady())
        poll = select.poll()
        for number in (*descriptors, self._control.asked):
            poll.register(number, select.POLLIN)
        self.busy_since = None
        ready = {number for number, _ in poll.poll(0 if self.stop_requested else max(0.0, timeout) * 1000)}
        self.busy_since = self._clock.steady()
        return ready

    def _tell_stop(self) -> None:
        self.stop_requested = True
        self._control.wake_worker()
        self._stopping()

    def _on_signal(self, number: int, frame: object) -> None:
        self.stop_requested = True

    def _run_periodic(self) -> None:
        self.busy_since = now = self._clock.steady()
        for number, (moment, seconds, action) in enumerate(self._periodic):
            if now >= moment:
                self._periodic[number] = (now + seconds, seconds, action)
                action()


class Answering(Meanwhile):
    """Answers requests in the control thread. ``live``: functions that any thread can call at any time."""

    def __init__(self, name: str, now: Callable[[], float], obstacles: Obstacles) -> None:
        """``now`` returns monotonic time in seconds."""
        self._name = name
        self._now = now
        self._obstacles = obstacles
        self._published: dict[str, dict[str, Any]] = {"STATUS": {"status": "Starting", "read": {}, "write": []}}
        self.runner: Runner | None = None
        self.wait = ""
        """Why the group cannot continue; empty if it can. The worker replaces it, so any thread can read it."""
        self.live: dict[str, Verb] = {}
        self.stalled: Callable[[], bool] = lambda: False

    def publish(self, verbs: dict[str, Verb]) -> None:
        """Publish the answers to give while the worker is busy. The worker calls this."""
        for name in REQUESTS:
            if name in verbs:
                try:
                    self._published[name] = verbs[name]({})
                except GgsError:
                    self._published.pop(name, None)

    def patience(self, verb: str) -> float:
        """Return the seconds to wait for the worker: less if it has already been busy with one piece of work.

        A process that is still connecting gets more time for a request that only it can answer, such as GETLAG.
        """
        if self.live.keys() <= set(STOPS) and verb not in (*self._published, *CONFIRMED):
            return START_PATIENCE_SECONDS
        return max(LEAST_PATIENCE_SECONDS, PATIENCE_SECONDS - self.busy_seconds)

    def at_once(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        return self.live[verb](arguments) if verb in STOPS else None

    def instead(self, verb: str, arguments: dict[str, Any], *, begun: bool) -> dict[str, Any] | None:
        if verb in self.live:
            return self.with_waiting(verb, self.live[verb](arguments))
        if verb in self._published and not any(arguments.values()):
            return self.with_waiting(verb, self._published[verb])
        if verb in CONFIRMED:
            return {"queued": f"{self._name} is {self.busy}; {verb} runs after that."}
        ends = "is running" if begun else "did not run"
        raise ProcessError(
            f"{self._name} is {self.busy}: {verb} {ends}", code="GGS-00603", hint="try again, or STOP the group"
        )

    def stays(self, verb: str) -> bool:
        return verb in CONFIRMED

    def check(self) -> None:
        self._obstacles.check(stuck=self.busy_seconds >= STUCK_SECONDS or self.stalled())

    @property
    def busy_seconds(self) -> float:
        """Seconds that the worker has been busy with one piece of work."""
        since = self.runner.busy_since if self.runner is not None else None
        return self._now() - since if since is not None else 0.0

    @property
    def busy(self) -> str:
        """``busy_seconds`` as text."""
        return f"busy with one operation for {self.busy_seconds:.0f} seconds"

    def with_waiting(self, verb: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Add what the process is waiting for to an answer."""
        state = self.state()
        if verb == "STATUS":
            return {**answer, **state}
        if verb not in WAITING or not state["obstacles"]:
            return answer
        return {**answer, "obstacles": answer.get("obstacles") or state["obstacles"]}

    def state(self) -> dict[str, Any]:
        """Return the part that is added to answers: how long the worker is busy, and what its statements wait for."""
        return {
            "busy_seconds": round(self.busy_seconds, 1) if self.busy_seconds >= STUCK_SECONDS else 0,
            "obstacles": self.waits(),
        }

    def waits(self) -> list[str]:
        """Return why the group cannot continue, and what its statements wait for. Any thread can call this."""
        return [*([self.wait] if self.wait else ()), *(each.text for each in self._obstacles.current)]
