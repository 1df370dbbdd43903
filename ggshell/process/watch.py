"""Which groups of a home run, and which have just ended: by process descriptors, without asking anybody.

Also finds what was started by others, or by a Manager that is no more.
"""

from __future__ import annotations

import os

from ggshell.process.state import ALIVE, ProcessFile, alive, end_descriptor, read_process_file, state_of
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home

GroupId = tuple[str, GroupType]


class Watch:
    """The running groups.  ``descriptors`` become readable when one ends; where the system has none, ``scan`` finds it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._running: dict[GroupId, ProcessFile] = {}
        self._descriptors: dict[int, GroupId] = {}

    def running(self) -> dict[GroupId, ProcessFile]:
        """The groups that ran at the last look."""
        return dict(self._running)

    def descriptors(self) -> list[int]:
        return list(self._descriptors)

    def scan(self, groups: list[GroupId]) -> list[GroupId]:
        """Look at the process files: begin to watch who runs, and give back who has ended unseen."""
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
        """The groups behind descriptors that became readable: they have ended.

        Each is looked at once more: a number may by now stand for another process, started since the poll.
        """
        named = [self._descriptors[number] for number in ready if number in self._descriptors]
        found = [group for group in named if not alive(self._running[group])]
        for group in found:
            self._forget(group)
        return found

    def close(self) -> None:
        """Watch nobody any more."""
        for group in list(self._running):
            self._forget(group)

    def _same(self, group: GroupId, entry: ProcessFile) -> bool:
        known = self._running.get(group)
        return known is not None and (known.pid, known.ticks) == (entry.pid, entry.ticks)

    def _begin(self, group: GroupId, entry: ProcessFile) -> None:
        descriptor = end_descriptor(entry)
        if descriptor is None and hasattr(os, "pidfd_open"):
            return  # it ended between the two looks: the next scan sees a process file without its process
        self._running[group] = entry
        if descriptor is not None:
            self._descriptors[descriptor] = group

    def _forget(self, group: GroupId) -> None:
        self._running.pop(group, None)
        for number in [number for number, watched in self._descriptors.items() if watched == group]:
            del self._descriptors[number]
            os.close(number)


def was_killed(home: Home, group: GroupId) -> bool:
    """Whether a group's last process was ended by KILL."""
    entry = read_process_file(home.process(*group))
    return entry is not None and entry.killed
