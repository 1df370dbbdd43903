"""Reports of refused sign-ins and connections: guessing a password must not fill ggserr.log."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from ggshell.clock import Clock

PAUSE_SECONDS: Final = 60.0
_MOST = 10_000


class _Reported(NamedTuple):
    """When a refusal was last reported (monotonic seconds), and how many followed since then."""

    when: float
    since: int


class RefusedSignIns:
    """Decides which refused sign-ins are reported: one a minute for each user name and address. Any thread can use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reported: dict[tuple[str, str], _Reported] = {}

    def report(self, name: str, client: str) -> int | None:
        """Return how many refusals were not reported since the last report; None if this one is not to be reported."""
        with self._lock:
            key, now = (name, client), self._clock.steady()
            before = self._reported.pop(key, None)
            if before is not None and now - before.when < PAUSE_SECONDS:
                self._reported[key] = _Reported(before.when, before.since + 1)
                return None
            if len(self._reported) >= _MOST:
                del self._reported[next(iter(self._reported))]
            self._reported[key] = _Reported(now, 0)
            return before.since if before is not None else 0
