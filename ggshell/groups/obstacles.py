"""Finds what a process's statements wait for, in a separate thread, and cancels the statements when the process stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ggshell.clock import Clock, local_text
from ggshell.errors import GgsError
from ggshell.links import Blocker, Link, Links, Seen

CHECK_SECONDS, STOP_SECONDS = 1.0, 0.2
SILENT_SECONDS = 10.0
"""Seconds after which a statement without an answer, and without a lock that blocks it, is reported."""
BREAK_SECONDS = 1.0
"""Seconds that a canceled statement may continue before its connection is closed."""


class Obstacle(NamedTuple):
    """What a statement waits for: a session, or with ``pid`` 0 a database that does not answer."""

    pid: int
    user: str
    text: str

    @property
    def key(self) -> tuple[int, str]:
        return self.pid, "" if self.pid else self.text


class Obstacles:
    """Checks the connections while the worker is stuck or stopping; otherwise there is no thread.

    ``current`` is replaced, never modified, so any thread may read it.
    """

    def __init__(
        self,
        links: Links,
        clock: Clock,
        report: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """``report`` reports each obstacle once; ``changed`` is called after each change of ``current``."""
        self._links = links
        self._clock = clock
        self._report = report
        self._changed = changed
        self.current: tuple[Obstacle, ...] = ()
        self._stuck = self._ended = False
        self._stopping: float | None = None
        self._reported: set[tuple[int, str]] = set()
        self._since: dict[Link, tuple[str, float]] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self, *, stuck: bool) -> None:
        """Start the thread if the worker is stuck or stopping; never waits."""
        self._stuck = stuck
        if stuck or self._stopping is not None:
            self._start()

    def stop(self) -> None:
        """From now on, cancel statements that wait."""
        if self._stopping is None:
            self._stopping = self._clock.steady()
            self._since = {}
        self._start()
        self._wake.set()

    def end(self) -> None:
        """Stop checking, because the process ends."""
        self._ended = True
        self._wake.set()

    def _start(self) -> None:
        if self._ended or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._run, name="obstacles", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended and (self._stuck or self._stopping is not None):
            self._turn()
            self._wake.wait(CHECK_SECONDS if self._stopping is None else STOP_SECONDS)
            self._wake.clear()
        self._reported, self._since = set(), {}
        self._show(())

    def _turn(self) -> None:
        waiting = self._links.waiting()
        seen = _observe(waiting)
        now = self._clock.steady()
        since: dict[Link, tuple[str, float]] = {}
        for link in waiting:
            statement = seen[link].statement if link in seen else ""
            before = self._since.get(link)
            same = before is not None and (before[0] == statement or not statement or not before[0])
            since[link] = (statement, before[1]) if before is not None and same else (statement, now)
        self._since = since
        if self._stopping is not None:
            for link in waiting:
                self._end(link, seen.get(link), now - since[link][1])
        self._publish(waiting, seen, now)

    def _end(self, link: Link, seen: Seen | None, seconds: float) -> None:
        """Cancel a statement: at once if a lock blocks it, otherwise after its patience; if that fails, disconnect."""
        blocked = seen is not None and bool(seen.blockers)
        if not blocked and seconds < link.patience:
            return
        if seen is None or seconds >= link.patience + BREAK_SECONDS:
            link.break_off()
            return
        try:
            link.cancel()
        except GgsError:
            link.break_off()

    def _publish(self, waiting: list[Link], seen: Mapping[Link, Seen], now: float) -> None:
        found: dict[tuple[int, str], Obstacle] = {}
        for link in waiting:
            for each in self._obstacles_of(link, seen.get(link), now):
                found.setdefault(each.key, each)
        self._show(tuple(found.values()))
        for key, each in found.items():
            if key not in self._reported:
                self._reported.add(key)
                self._report(each.text)

    def _show(self, found: tuple[Obstacle, ...]) -> None:
        before, self.current = self.current, found
        if before != found:
            self._changed()

    def _obstacles_of(self, link: Link, seen: Seen | None, now: float) -> list[Obstacle]:
        if seen is not None and seen.blockers:
            return [Obstacle(each.pid, each.user, _blocked(link, each)) for each in seen.blockers]
        if link.observable and now - self._since[link][1] >= SILENT_SECONDS:
            text = (
                f"No response from {link.address()} to a statement for {SILENT_SECONDS:g} seconds; no lock blocks it."
            )
            return [Obstacle(0, "", text)]
        return []


def _blocked(link: Link, blocker: Blocker) -> str:
    since = f" since {local_text(blocker.since)}" if blocker.since else ""
    who = f"user {blocker.user}, {blocker.program or 'no application name'}, {blocker.state or 'background'}{since}"
    text = f"Waiting for a lock in {link.address()}: blocked by pid {blocker.pid} ({who})"
    return f"{text}: {blocker.statement or 'no statement'}"


def _observe(links: list[Link]) -> dict[Link, Seen]:
    """Return what the servers report about the connections; servers that do not answer are skipped."""
    places: dict[tuple[type, str], list[Link]] = {}
    for link in links:
        places.setdefault((type(link), link.address()), []).append(link)
    found: dict[Link, Seen] = {}
    for group in places.values():
        try:
            found.update(group[0].observe(group))
        except GgsError:
            continue
    return found
