"""The order of the tasks of a load: copies and index builds of the largest tables first, each when it can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ggshell.pipeline.load.tasks import CopyTask, RunTask, Task
from ggshell.types import TableName


class Schedule:
    """Gives out tasks. A task of a table begins after all copies of that table; ``last`` run one by one after all others.

    Among the tasks that can begin, the one of the largest table is first.
    """

    def __init__(self, copies: Iterable[CopyTask], after: Iterable[RunTask], last: Sequence[RunTask] = ()) -> None:
        copying = list(copies)
        self._waiting: list[Task] = sorted([*copying, *after], key=lambda task: -task.bytes)
        self._copies = Counter(task.table for task in copying)
        self._last = list(last)[::-1]
        self._running: list[Task] = []

    @property
    def finished(self) -> bool:
        return not (self._waiting or self._last or self._running)

    @property
    def running(self) -> Sequence[Task]:
        """The tasks that were given out and are not done."""
        return self._running

    def take(self) -> Task | None:
        """The next task; None if nothing can begin now."""
        for place, task in enumerate(self._waiting):
            if self._can_begin(task):
                self._running.append(self._waiting.pop(place))
                return task
        if self._last and not self._waiting and not self._running:
            self._running.append(self._last.pop())
            return self._running[-1]
        return None

    def done(self, task: Task) -> None:
        """A task is complete."""
        self._running.remove(task)
        if isinstance(task, CopyTask):
            self._copies[task.table] -= 1

    def again(self, task: Task) -> None:
        """A task was rolled back and is given out once more."""
        self._running.remove(task)
        self._waiting.insert(0, task)

    def _can_begin(self, task: Task) -> bool:
        if isinstance(task, CopyTask) or task.table is None:
            return True
        return not self._copies[task.table] and not self._in_the_way(task, task.table)

    def _in_the_way(self, task: RunTask, table: TableName) -> bool:
        beside = [each for each in self._running if isinstance(each, RunTask) and each.table == table]
        return any(task.alone or each.alone for each in beside)
