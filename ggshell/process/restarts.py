"""AUTOSTART and AUTORESTART: which groups Manager starts by itself, and when.  Rules and a clock; no process is touched."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from ggshell.clock import Clock
from ggshell.params.files import RestartRule
from ggshell.process.watch import GroupId
from ggshell.store.checkpoint import GroupType

_KINDS = {
    "ER": (GroupType.EXTRACT, GroupType.REPLICAT),
    "EXTRACT": (GroupType.EXTRACT,),
    "REPLICAT": (GroupType.REPLICAT,),
    "DISTPATH": (GroupType.PATH,),
}


def rule_takes(kind: str, pattern: str, group: GroupId) -> bool:
    """Whether an ``ER|EXTRACT|REPLICAT|DISTPATH pattern`` takes a group."""
    name, type_ = group
    return type_ in _KINDS[kind] and fnmatch.fnmatchcase(name, pattern.upper())


class _Attempts:
    """A group's starts within the rule's reset time, and the moment of the next."""

    def __init__(self) -> None:
        self.count = 0
        self.first = 0.0
        self.due: float | None = None


class Restarts:
    """Who is to be started again, and when.

    1. A group that no rule takes is never due.
    2. The first start comes the rule's wait after the abend.
    3. After as many starts as the rule's retries, none comes until the reset time has passed since the first of them.
    4. Then the count begins anew.
    5. A group that was started by hand, stopped or killed has a clean sheet.
    """

    def __init__(self, rules: Sequence[RestartRule], clock: Clock) -> None:
        self.rules = rules
        self._clock = clock
        self._attempts: dict[GroupId, _Attempts] = {}

    def abended(self, group: GroupId) -> float | None:
        """Note an abend; seconds until the group will be started again, None when no rule takes it."""
        rule = next((rule for rule in self.rules if rule_takes(rule.kind, rule.pattern, group)), None)
        if rule is None or rule.retries < 1:
            return None
        now = self._clock.steady()
        attempts = self._attempts.setdefault(group, _Attempts())
        if attempts.count and now - attempts.first >= rule.reset:
            attempts.count = 0
        due = now + rule.wait
        if attempts.count >= rule.retries:
            due = max(due, attempts.first + rule.reset)
            attempts.count = 0
        attempts.due = due
        return due - now

    def due(self) -> list[GroupId]:
        """The groups whose moment has come; they count as started."""
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
        """How long until a group is due, None when none is waiting."""
        waiting = [attempts.due for attempts in self._attempts.values() if attempts.due is not None]
        return max(0.0, min(waiting) - self._clock.steady()) if waiting else None

    def forget(self, group: GroupId) -> None:
        """A clean sheet for a group."""
        self._attempts.pop(group, None)
