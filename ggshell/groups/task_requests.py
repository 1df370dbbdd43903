"""RMTTASK: how an Extract has the task of its load prepared and run, in this home or in another one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from ggshell.errors import ProcessError
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.load_tasks import TaskResult, prepare_task, start_task, task_result
from ggshell.groups.receivers import Receivers
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import GroupKind, WriteCheckpoint
from ggshell.home.events import Severity
from ggshell.home.process_file import end_descriptor, read_process_file
from ggshell.network.opening import TaskAnswer
from ggshell.network.remote_task import ask_for_task
from ggshell.plurals import counted

WAIT_SECONDS = 1.0


class LoadTasks:
    """The tasks of one Extract: for each, its group and the trail of its load."""

    def __init__(self, context: GroupContext, forms: TrailForms, tasks: Sequence[tuple[str, WriteCheckpoint]]) -> None:
        self._context = context
        self._receivers = Receivers(context, forms.hosts)
        self._tasks = tasks

    def prepare(self) -> None:
        """Check the tasks before anything is loaded. Raises ProcessError (GGS-00972), ConnectionLostError."""
        for task, target in self._tasks:
            if target.is_elsewhere:
                self._ask(task, target, "")
            else:
                prepare_task(self._context.home, task)

    def finish(self, load: str) -> None:
        """Run the tasks and wait until they have applied the load.

        Raises ProcessError (GGS-00973) if one failed, ConnectionLostError: asking again does not start it twice.
        """
        for task, target in self._tasks:
            if target.is_elsewhere:
                answer = self._ask(task, target, load)
                result: TaskResult | None = TaskResult(answer.rows, answer.error)
            else:
                result = self._run_here(task, load)
            if result is None:
                return
            self._report(task, target, result)

    def _ask(self, task: str, target: WriteCheckpoint, load: str) -> TaskAnswer:
        link, address = self._receivers.connect(target)
        with contextlib.closing(link):
            where = f"the service at {address.service.place}"
            return ask_for_task(link, where, self._receivers.sender, address.trail, task, load, self._wait)

    def _wait(self, descriptor: int) -> bool:
        self._context.runner.wait([descriptor], WAIT_SECONDS)
        return not self._context.runner.stop_requested

    def _run_here(self, task: str, load: str) -> TaskResult | None:
        """Return the result of a task of this home; None if this process is to stop."""
        home, runner = self._context.home, self._context.runner
        start_task(home, task, load)
        while (result := task_result(home, task, load)) is None:
            entry = read_process_file(home.process(task, GroupKind.REPLICAT))
            ended = end_descriptor(entry) if entry is not None else None
            runner.wait([ended] if ended is not None else [], WAIT_SECONDS)
            if ended is not None:
                os.close(ended)
            if runner.stop_requested:
                return None
        return result

    def _report(self, task: str, target: WriteCheckpoint, result: TaskResult) -> None:
        where = f" at {target.receiver_place}" if target.is_elsewhere else ""
        if result.error:
            raise ProcessError(
                f"the load was sent, but task REPLICAT {task}{where} failed: {result.error}",
                code="GGS-00973",
                hint=f"see dirrpt/{task}.rpt there, empty the tables, then START EXTRACT {self._context.group} again",
            )
        text = f"Task REPLICAT {task}{where} has applied {counted(result.rows, 'row')}."
        self._context.report.event(Severity.INFO, "GGS-00974", text)
