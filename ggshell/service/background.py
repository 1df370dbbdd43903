"""The rule for the threads that work in the background of the service: an error is an event and never ends the thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable
from typing import Final

from ggshell.errors import DiskError, GgsError

RETRY_SECONDS: Final = 30.0
"""How long a thread waits after an error before it tries again."""
_END_SECONDS: Final = 1.0

Report = Callable[[GgsError], None]
"""Writes an error as an event. Raises DiskError."""


def as_error(error: Exception, what: str) -> GgsError:
    """Return the error for an event: an exception that is not an error of this program is an internal error of ``what``."""
    if isinstance(error, GgsError):
        return error
    return GgsError(f"{what}: {type(error).__name__}: {error}", code="GGS-00999")


class Problems:
    """Reports each problem of ``what`` once, until it is over or changes. A report that cannot be written is repeated."""

    def __init__(self, what: str, report: Report) -> None:
        self._what = what
        self._report = report
        self._told: dict[Hashable, str] = {}

    def tell(self, key: Hashable, error: Exception) -> None:
        found = as_error(error, self._what)
        if self._told.get(key) != str(found):
            with contextlib.suppress(DiskError):  # on a full disk there is nowhere to write
                self._report(found)
                self._told[key] = str(found)

    def over(self, key: Hashable) -> None:
        self._told.pop(key, None)


class Background:
    """A thread that repeats ``turn`` until it is closed.

    ``turn`` returns the seconds until the next one, None to wait until ``woken`` is set. After an error it is repeated after
    ``retry`` seconds.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], float | None],
        report: Report,
        woken: threading.Event | None = None,
        retry: float = RETRY_SECONDS,
    ) -> None:
        self._name = name
        self._turn = turn
        self._problems = Problems(name, report)
        self._woken = threading.Event() if woken is None else woken
        self._retry = retry
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Let the next turn begin now."""
        self._woken.set()

    def close(self) -> None:
        """Begin no further turn, and wait a moment for the one that runs."""
        self._closed = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._closed:
            self._woken.clear()
            self._woken.wait(self._next())

    def _next(self) -> float | None:
        try:
            wait = self._turn()
        except Exception as error:  # noqa: BLE001 - a bug must be reported but must not end the thread
            self._problems.tell(self._name, error)
            return self._retry
        self._problems.over(self._name)
        return wait
