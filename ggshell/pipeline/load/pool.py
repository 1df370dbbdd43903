"""The processes that do the tasks of a load. Each has its own two connections, so that copies use several cores.

A process ends when its order channel closes: after this process is killed, no copy continues.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ggshell.errors import ProcessError
from ggshell.pipeline.load.tasks import Done, Failed, Report, Task

PATIENCE_SECONDS = 5.0


class Job:
    """One process. ``task``: what it works on; None if it is idle."""

    def __init__(self, program: str) -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", program, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self.channel = Connection(mine.detach())
        self.task: Task | None = None

    def set_up(self, setup: Any) -> None:
        """Send the process the data for its tasks, once. Raises ProcessError if the process has ended."""
        self._send(setup)

    def order(self, task: Task) -> None:
        """Begin a task. Raises ProcessError if the process has ended."""
        self.task = task
        self._send(task)

    def _send(self, what: Any) -> None:
        try:
            self.channel.send(what)
        except OSError as error:
            raise self._ended() from error

    def report(self) -> Report:
        """Receive the next report; after the last one of a task, the job is idle. Raises ProcessError."""
        try:
            found: Report = self.channel.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        return found

    def _ended(self) -> ProcessError:
        return ProcessError(
            f"a job of LOAD has ended: exit code {self._process.wait()}", hint="run the same LOAD statement again"
        )

    def end(self) -> None:
        """Ask the process to end; what it has not committed is rolled back."""
        self.channel.close()
        if self.task is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process, and wait until it has ended."""
        self.end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Pool:
    """Up to ``count`` jobs. A job that ends by itself is replaced, and its task counts as failed.

    The first job starts at once, so that it is ready when the first task is known; each other one when a task needs it.
    """

    def __init__(self, program: str, count: int) -> None:
        self._program = program
        self._count = count
        self._setup: Any = None
        self._jobs = [self._started()]

    def set_up(self, setup: Any) -> None:
        """Send every job the data for its tasks, before the first task. Raises ProcessError."""
        self._setup = setup
        for job in self._jobs:
            job.set_up(setup)

    def _started(self) -> Job:
        try:
            job = Job(self._program)
        except OSError as error:
            raise ProcessError(f"a job of LOAD cannot be started: {os.strerror(error.errno or 0)}") from error
        if self._setup is not None:
            job.set_up(self._setup)
        return job

    @property
    def full(self) -> bool:
        """Whether all jobs work on a task."""
        return sum(job.task is not None for job in self._jobs) >= self._count

    def order(self, task: Task) -> None:
        """Give a task to a job. Raises ProcessError."""
        idle = next((job for job in self._jobs if job.task is None), None)
        if idle is None:
            idle = self._started()
            self._jobs.append(idle)
        idle.order(task)

    def reports(self, seconds: float) -> Sequence[tuple[Task, Report]]:
        """Wait up to some seconds; return the reports that have come, each with its task."""
        busy: dict[Any, tuple[Job, Task]] = {job.channel: (job, job.task) for job in self._jobs if job.task is not None}
        found: list[tuple[Task, Report]] = []
        for channel in wait(list(busy), seconds):
            job, task = busy[channel]
            try:
                report = job.report()
            except ProcessError as error:
                report = Failed(error.message, lost=True)
                job.close()
                self._jobs[self._jobs.index(job)] = self._started()
            if isinstance(report, Done | Failed):
                job.task = None
            found.append((task, report))
        return found

    def close(self) -> None:
        """End all jobs, at the same time."""
        for job in self._jobs:
            job.end()
        for job in self._jobs:
            job.close()
        self._jobs = []
