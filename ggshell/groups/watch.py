"""Detects which groups of a home run and which have ended, by process files and process descriptors.

It also finds groups that were started by other commands or by an earlier Manager.
"""

from __future__ import annotations

import os

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessFile, alive, end_descriptor, read_process_file, state_of

GroupId = tuple[str, GroupKind]


class Watch:
    """The running groups.

    A descriptor becomes readable when its group ends. On systems without such descriptors, ``scan`` detects the end.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._running: dict[GroupId, ProcessFile] = {}
        self._descriptors: dict[int, GroupId] = {}

    def running(self) -> dict[GroupId, ProcessFile]:
        """Return the groups that were running at the last scan."""
        return dict(self._running)

    def descriptors(self) -> list[int]:
        return list(self._descriptors)

    def scan(self, groups: list[GroupId]) -> list[GroupId]:
        """Check the process files: start watching the running groups, and return the groups that ended undetected."""
        ended = []
        for group in [*groups, *(known for known in self._running if known not in groups)]:
            state, entry = state_of(self._home.process(*group))
            if state in ALIVE and entry is not None:
                if not self._same(group, entry):
                    self._forget(group)
                    self._begin(group, entry)
            elif group in self._running:
                self._forget(group)
                ended.append(group)
        return ended

    def ended(self, ready: set[int]) -> list[GroupId]:
        """Return the groups that have ended, given the readable descriptors.

        Each process is checked again, because since the poll its descriptor number may have been reused for another one.
        """
        named = [self._descriptors[number] for number in ready if number in self._descriptors]
        found = [group for group in named if not alive(self._running[group])]
        for group in found:
            self._forget(group)
        return found

    def close(self) -> None:
        """Stop watching the processes."""
        for group in list(self._running):
            self._forget(group)

    def _same(self, group: GroupId, entry: ProcessFile) -> bool:
        known = self._running.get(group)
        return known is not None and (known.pid, known.ticks) == (entry.pid, entry.ticks)

    def _begin(self, group: GroupId, entry: ProcessFile) -> None:
        descriptor = end_descriptor(entry)
        self._running[group] = entry  # also if it has just ended: the next scan then reports it
        if descriptor is not None:
            self._descriptors[descriptor] = group

    def _forget(self, group: GroupId) -> None:
        self._running.pop(group, None)
        for number in [number for number, watched in self._descriptors.items() if watched == group]:
            del self._descriptors[number]
            os.close(number)


def was_killed(home: Home, group: GroupId) -> bool:
    """Whether KILL ended the group's last process."""
    entry = read_process_file(home.process(*group))
    return entry is not None and entry.killed
