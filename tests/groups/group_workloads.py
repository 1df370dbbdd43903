"""Workloads that groups run instead of replication: ``python group_workloads.py WORKLOAD HOME GROUP`` starts a real process."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from ggshell.clock import SystemClock
from ggshell.errors import ApplyError, GgsError
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.progress import ReadingProgress
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.types import TableName


def idle(context: GroupContext) -> None:
    """Wait until a stop is requested."""

    def status(_: dict[str, Any]) -> dict[str, Any]:
        return {"status": "At EOF", "read": {}, "write": []}

    def bug(_: dict[str, Any]) -> dict[str, Any]:
        return {"never": 1 // 0}

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise ApplyError("not now", where="here", hint="later")

    context.verb("STATUS", status)
    context.verb("BUG", bug)
    context.verb("REFUSE", refuse)
    table = TableName("shop", "items")
    context.statistics.add(table, table, 5, 3)
    while not context.runner.stop_requested:
        context.runner.wait([], 30)


def connect_for_long(context: GroupContext) -> None:
    """Block until STOP, as a connection attempt to a database that does not answer does."""
    while not context.runner.stop_requested:
        threading.Event().wait(0.01)


def refuse(context: GroupContext) -> None:
    """Abend at once."""
    raise ApplyError("no row has this key", where="shop.items", hint="look at the discard file")


def crash(context: GroupContext) -> None:
    """Fail with an unexpected exception."""
    raise RuntimeError("a bug with PASSWORD hidden")


class ShiftedClock(SystemClock):
    """A clock that differs from the machine's by a number of seconds."""

    def __init__(self, seconds: int) -> None:
        self._shift = seconds * 1_000_000

    def now(self) -> int:
        return super().now() + self._shift


def at_the_end(context: GroupContext) -> None:
    """Process a record that is one second old and stay at the end of the trail until a stop is requested."""
    progress = ReadingProgress(context.clock, 0, 0, lambda: context.ahead)
    context.verb("GETLAG", lambda _: progress.lag_answer())
    while not context.runner.stop_requested:
        context.save(context.checkpoint)
        progress.processed(SystemClock().now() - 1_000_000)
        progress.reached_end()
        context.save(
            context.checkpoint._replace(record_time=progress.record_time, caught_up=context.clock.now() + 1_000_000)
        )
        context.runner.wait([], 0.5)


WORKLOADS = {
    "idle": idle,
    "connect_for_long": connect_for_long,
    "refuse": refuse,
    "crash": crash,
    "at_the_end": at_the_end,
}


def main() -> int:
    workload, home, group, *shift = sys.argv[1:]
    clock = ShiftedClock(int(shift[0]) if shift else 0)
    try:
        return run_group(Home(Path(home)), group, GroupKind.EXTRACT, WORKLOADS[workload], clock)
    except GgsError as error:
        sys.stderr.write(f"{error.code}  {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
