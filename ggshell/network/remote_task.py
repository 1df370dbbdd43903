"""Asks the service of another home for a task: to prepare it, or to start it for a load and say how it ended."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.errors import ConnectionLostError
from ggshell.network.handshake import Sender, expect, introduce
from ggshell.network.link import LOST, Link
from ggshell.network.opening import TaskAnswer


def ask_for_task(
    link: Link, where: str, sender: Sender, trail: str, task: str, load: str, wait: Callable[[int], bool]
) -> TaskAnswer:
    """Return the answer to a request for a task.

    ``load``: the load to apply, empty to prepare only. ``wait``: waits a while for a descriptor, false if the process is to
    stop. Raises ConnectionLostError, and ProcessError if the other home refuses.
    """
    introduce(link, where, sender.task_request(trail, task, load), sender)
    while (message := link.receive(0.0)) is None:
        if not wait(link.fileno()):
            raise ConnectionLostError("this process is stopping", code=LOST)
    return expect(message, TaskAnswer, where)
