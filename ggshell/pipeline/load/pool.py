"""The processes that do the tasks of a load. Each has its own two connections, so that copies use several cores.

A process ends when its order channel closes: after this process is killed, no copy continues.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ggshell.errors import ProcessError
from ggshell.pipeline.load.tasks import Done, Failed, Report, Task

PATIENCE_SECONDS = 5.0


class Job:
    """One process. ``task``: what it works on; None if it is idle."""

    def __init__(self, program: str, setup: Any) -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", program, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self.channel = Connection(mine.detach())
        self.channel.send(setup)
        self.task: Task | None = None

    def order(self, task: Task) -> None:
        """Begin a task. Raises ProcessError if the process has ended."""
        self.task = task
        try:
            self.channel.send(task)
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

    def close(self) -> None:
        """End the process; what it has not committed is rolled back."""
        self.channel.close()
        if self.task is not None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Pool:
    """Some jobs. A job that ends by itself is replaced, and its task counts as failed."""

    def __init__(self, program: str, setup: Any, count: int) -> None:
        self._program = program
        self._setup = setup
        self._jobs: list[Job] = []
        try:
            for _ in range(count):
                self._jobs.append(Job(program, setup))
        except OSError as error:
            self.close()
            raise ProcessError(f"a job of LOAD cannot be started: {os.strerror(error.errno or 0)}") from error

    @property
    def idle(self) -> Iterator[Job]:
        return (job for job in self._jobs if job.task is None)

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
                self._jobs[self._jobs.index(job)] = Job(self._program, self._setup)
            if isinstance(report, Done | Failed):
                job.task = None
            found.append((task, report))
        return found

    def close(self) -> None:
        """End all jobs."""
        for job in self._jobs:
            job.close()
        self._jobs = []
