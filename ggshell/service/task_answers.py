"""The tasks of direct loads that Extracts of other homes ask for (RMTTASK): prepare one, or run it and return its result."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Executor
from typing import Final

from ggshell.errors import DiskError
from ggshell.groups.load_tasks import prepare_task, start_task, task_result
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import end_descriptor, read_process_file
from ggshell.network.opening import TaskAnswer, TaskRequest
from ggshell.network.proven import Proven
from ggshell.network.remote_group import RemoteGroup

WAIT_SECONDS: Final = 5.0
"""How long the end of a task is awaited before it is looked for; for a system without descriptors of processes."""


async def answer_task(home: Home, asked: TaskRequest, proven: Proven, workers: Executor) -> TaskAnswer:
    """Carry out a request; for a load, return when the task has ended. Raises GgsError."""
    loop = asyncio.get_running_loop()
    try:
        sender = RemoteGroup(asked.home, asked.host, asked.group, proven=proven)
        if not asked.load:
            await loop.run_in_executor(workers, prepare_task, home, asked.task, sender)
            return TaskAnswer()
        await loop.run_in_executor(workers, start_task, home, asked.task, asked.load, sender)
    except OSError as error:
        raise DiskError(f"the task {asked.task} cannot be prepared: {error.strerror}") from error
    while (result := await loop.run_in_executor(workers, task_result, home, asked.task, asked.load)) is None:
        await _ended(home, asked.task.upper())
    return TaskAnswer(result.rows, result.error)


async def _ended(home: Home, group: str) -> None:
    """Wait until the process of a task has ended."""
    entry = read_process_file(home.process(group, GroupKind.REPLICAT))
    descriptor = end_descriptor(entry) if entry is not None else None
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    if descriptor is None:
        ended.set() if entry is None else None
    else:
        loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await ended.wait()
    except TimeoutError:
        return
    finally:
        if descriptor is not None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
