"""The starts of groups by Manager: several at once without blocking it, and by AUTOSTART and AUTORESTART."""

from __future__ import annotations

import fnmatch
import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.errors import ConflictError, GgsError
from ggshell.groups.control import LaterAnswer
from ggshell.groups.launch import READY_SECONDS, Launch
from ggshell.groups.watch import GroupId
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import RestartRule

KINDS = {
    GroupKind.EXTRACT: "extract",
    GroupKind.REPLICAT: "replicat",
    GroupKind.PATH: "path",
    GroupKind.RECVPATH: "recvpath",
}
MOST_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
"""The maximum number of processes that start at once; more would only compete for processors and memory."""


class _Start(NamedTuple):
    launch: Launch
    until: float
    asked: LaterAnswer | None


class Starts:
    """The starts in progress, and the waiting starts in the order of their requests."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        begins: Callable[[GroupId], None],
        runs: Callable[[GroupId, subprocess.Popen[bytes]], None],
        fails: Callable[[GroupId, GgsError], None],
    ) -> None:
        """``begins`` is called before a group is started, and may refuse the start. ``runs`` is called when the group runs.

        ``fails`` is called when a start that no client requested fails.
        """
        self._home = home
        self._clock = clock
        self._begins = begins
        self._runs = runs
        self._fails = fails
        self._waiting: deque[tuple[GroupId, LaterAnswer | None]] = deque()
        self._under_way: dict[GroupId, _Start] = {}
        self._delayed: dict[GroupId, float] = {}

    def ask(self, group: GroupId) -> LaterAnswer:
        """Start a group for a client; the answer follows when the group runs or has failed to start."""
        later = LaterAnswer()
        if self.under_way(group) or any(other == group for other, _ in self._waiting):
            later.refuse(ConflictError(f"{group[1]} {group[0]} is already starting."))
        else:
            self._waiting.append((group, later))
            self._go_on()
        return later

    def begin(self, group: GroupId) -> None:
        """Start a group for which no client waits."""
        if not self.under_way(group):
            self._waiting.append((group, None))
            self._go_on()

    def begin_after(self, group: GroupId, seconds: float) -> None:
        """Start a group for which no client waits, after a time, unless ``cancel`` is called before."""
        if seconds <= 0:
            self.begin(group)
            return
        self._delayed[group] = self._clock.steady() + seconds

    def cancel(self, group: GroupId) -> None:
        """Cancel a start for which ``begin_after`` waits."""
        self._delayed.pop(group, None)

    def under_way(self, group: GroupId) -> bool:
        return group in self._under_way

    def descriptors(self) -> list[int]:
        """Return the descriptors that become readable when a start succeeds or fails."""
        return [start.launch.fileno() for start in self._under_way.values()]

    def seconds_to_next(self) -> float | None:
        """Return the seconds until a start times out or a delayed one is due, or None if there is none."""
        times = [*(start.until for start in self._under_way.values()), *self._delayed.values()]
        return max(0.0, min(times) - self._clock.steady()) if times else None

    def check(self, ready: set[int]) -> None:
        """Report the starts that have succeeded, failed or timed out, and begin those that are due or waiting."""
        now = self._clock.steady()
        for group in [each for each, time in self._delayed.items() if time <= now]:
            del self._delayed[group]
            if self._home.checkpoint(*group).exists():
                self.begin(group)
        for group, start in list(self._under_way.items()):
            decided = start.launch.fileno() in ready
            if decided or now >= start.until:
                self._finish(group, start, ready=decided)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and len(self._under_way) < MOST_AT_ONCE:
            group, asked = self._waiting.popleft()
            try:
                self._begins(group)
                launch = Launch(self._home, KINDS[group[1]], group[0])
            except GgsError as error:
                self._failed(group, asked, error)
                continue
            self._under_way[group] = _Start(launch, self._clock.steady() + READY_SECONDS, asked)

    def _finish(self, group: GroupId, start: _Start, *, ready: bool) -> None:
        try:
            child = start.launch.finish(ready=ready)
        except GgsError as error:
            del self._under_way[group]
            self._failed(group, start.asked, error)
            return
        del self._under_way[group]
        self._runs(group, child)
        if start.asked is not None:
            start.asked.answer({"pid": child.pid})

    def _failed(self, group: GroupId, asked: LaterAnswer | None, error: GgsError) -> None:
        if asked is not None:
            asked.refuse(error)
        else:
            self._fails(group, error)


_KINDS = {
    "ER": (GroupKind.EXTRACT, GroupKind.REPLICAT),
    **{str(kind): (kind,) for kind in GroupKind},
}


class _Attempts:
    """A group's restarts within the rule's reset time, and the time of the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.first = 0.0
        self.due: float | None = None


class Restarts:
    """Decides which groups are restarted, and when.

    1. A group that no rule selects is never restarted.
    2. A restart follows the abend after the rule's wait.
    3. After the rule's number of retries, there is no restart until the reset time has passed since the first of them.
    4. The count then starts over.
    5. The count also starts over if the group is started manually, stopped or killed.
    6. With a rule that gives up, no restart follows the last retry, instead of 3 and 4.
    7. The own rule of a group precedes the rules that select groups by patterns.
    """

    def __init__(
        self,
        rules: Sequence[RestartRule],
        clock: Clock,
        own: Callable[[GroupId], RestartRule | None] = lambda _: None,
    ) -> None:
        """``own``: returns the rule of a group's profile."""
        self.rules = rules
        self._clock = clock
        self._own = own
        self._attempts: dict[GroupId, _Attempts] = {}

    def abended(self, group: GroupId) -> float | None:
        """Record an abend; return the seconds until the group is restarted, or None if it is not restarted."""
        rule = self._own(group) or next(
            (rule for rule in self.rules if rule_takes(rule.kind, rule.pattern, group)), None
        )
        if rule is None or rule.retries < 1:
            return None
        now = self._clock.steady()
        attempts = self._attempts.setdefault(group, _Attempts())
        if attempts.count and now - attempts.first >= rule.reset:
            attempts.count = 0
        due = now + rule.wait
        if attempts.count >= rule.retries and rule.gives_up:
            return None
        if attempts.count >= rule.retries:
            due = max(due, attempts.first + rule.reset)
            attempts.count = 0
        attempts.due = due
        return due - now

    def due(self) -> list[GroupId]:
        """Return the groups that are due, and count them as restarted."""
        now = self._clock.steady()
        found = [
            group for group, attempts in self._attempts.items() if attempts.due is not None and attempts.due <= now
        ]
        for group in found:
            attempts = self._attempts[group]
            if not attempts.count:
                attempts.first = now
            attempts.count += 1
            attempts.due = None
        return found

    def seconds_to_next(self) -> float | None:
        """Return the seconds until a group is due, or None if none is waiting."""
        waiting = [attempts.due for attempts in self._attempts.values() if attempts.due is not None]
        return max(0.0, min(waiting) - self._clock.steady()) if waiting else None

    def forget(self, group: GroupId) -> None:
        """Reset the count of a group, and cancel its restart."""
        self._attempts.pop(group, None)


def rule_takes(kind: str, pattern: str, group: GroupId) -> bool:
    """Whether an ``ER|EXTRACT|REPLICAT|DISTPATH|RECVPATH pattern`` selects a group."""
    name, type_ = group
    return type_ in _KINDS[kind] and fnmatch.fnmatchcase(name, pattern.upper())
