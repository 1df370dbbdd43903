"""Runs the tasks of a load on its jobs: again if a connection was lost, and with progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from ggshell.errors import ConnectionLostError, DatabaseError, WaitingDdlError
from ggshell.pipeline.load.databases import SourceTable
from ggshell.pipeline.load.outcome import LoadProgress, OnProgress
from ggshell.pipeline.load.pool import Pool
from ggshell.pipeline.load.schedule import Schedule
from ggshell.pipeline.load.tasks import CopyTask, Failed, Moved, Report, Task
from ggshell.types import TableName

ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.5
"""After the first loss of a connection; twice as long after each further one."""
TOLD_SECONDS: Final = 0.25


class Work:
    """The jobs of a load. ``pause`` waits for some seconds, and returns true if the load is to end."""

    def __init__(self, pool: Pool, pause: Callable[[float], bool], on_progress: OnProgress) -> None:
        self._pool = pool
        self._pause = pause
        self._on_progress = on_progress
        self._attempts: Counter[Task] = Counter()
        self._sizes: dict[TableName, int] = {}
        self._open: Counter[TableName] = Counter()
        self._moved: Counter[Task] = Counter()
        self._bytes = self._rows = self._tables = self._done = 0

    def begin(self, tables: Iterable[SourceTable], kept: Collection[TableName]) -> None:
        """Set what the progress counts."""
        self._sizes = {each.name: max(1, each.bytes) for each in tables}
        self._tables = len(kept & self._sizes.keys())
        self._done = sum(self._sizes[name] for name in kept & self._sizes.keys())

    def run(self, schedule: Schedule, what: str) -> None:
        """Run all tasks. Raises DatabaseError for one that fails, ConnectionLostError if a server does not return."""
        while not schedule.finished:
            while not self._pool.full and (task := schedule.take()) is not None:
                self._pool.order(task)
            for task, report in self._pool.reports(TOLD_SECONDS):
                self._received(schedule, task, report)
            self._report_progress(what, copying=any(isinstance(each, CopyTask) for each in schedule.running))

    def _received(self, schedule: Schedule, task: Task, report: Report) -> None:
        if isinstance(report, Moved):
            self._moved[task] += report.bytes
            self._bytes += report.bytes
        elif isinstance(report, Failed):
            self._bytes -= self._moved.pop(task, 0)
            self._failed(task, report)
            schedule.again(task)
        else:
            schedule.done(task)
            if isinstance(task, CopyTask):
                self._moved.pop(task, None)
                self._rows += report.rows
                self._done += task.bytes
                self._open[task.table] += 1
                self._tables += self._open[task.table] == task.parts

    def _failed(self, task: Task, report: Failed) -> None:
        self._attempts[task] += 1
        if report.blocked:
            raise WaitingDdlError(report.message)
        if not report.lost:
            raise DatabaseError(
                f"{task.title}: {report.message}",
                code="GGS-00750",
                hint=report.hint or "correct the cause and run the same LOAD statement again; complete tables are kept",
            )
        if self._attempts[task] >= ATTEMPTS or self._pause(PAUSE_SECONDS * 2 ** (self._attempts[task] - 1)):
            raise ConnectionLostError(
                f"{task.title}: {report.message}", hint="run the same LOAD statement again; complete tables are kept"
            )

    def _report_progress(self, what: str, *, copying: bool) -> None:
        whole = sum(self._sizes.values())
        part = sum(min(moved, task.bytes) for task, moved in self._moved.items())
        share = (self._done + part) / whole if whole else 0.0
        doing = "" if copying else what
        self._on_progress(LoadProgress(self._rows, self._bytes, self._tables, len(self._sizes), min(share, 1.0), doing))
