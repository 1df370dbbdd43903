"""The task of a direct load: a Replicat added with SPECIALRUN, which an Extract with RMTTASK starts, here or in another home.

The Extract sends its load as a trail of the task. The Replicat applies that trail once, to its end, and leaves its result in
its checkpoint file, where the Extract asks for it. A load has an id, so that an Extract that lost its connection asks for the
result of the same load instead of starting the task again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ggshell.errors import ConflictError, DiskError, GgsError, StateError
from ggshell.files import locked
from ggshell.groups.ending import Ending
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessState, state_of
from ggshell.network.remote_group import RemoteGroup
from ggshell.network.trail_owner import delete_owner, owner_of
from ggshell.parameters.process_parameters import RunEnd
from ggshell.parameters.trail_statements import task_trail
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

CANNOT_RUN: Final = "GGS-00972"
START_SECONDS: Final = 60.0
_PREPARED: Final = "prepared"
"""The fact about a task that an Extract has prepared it since its last load; the next start forgets it."""


class TaskResult(NamedTuple):
    """How a task ended. ``rows``: how many it applied; ``error``: why it failed, empty if it applied everything."""

    rows: int = 0
    error: str = ""


def prepare_task(home: Home, group: str, sender: RemoteGroup | None = None) -> None:
    """Check that a group is a task that can run, and remove its last load.

    ``sender``: who asks for it in another home. Raises StateError (GGS-00972) if the group does not exist, is not a task, has
    no parameter file, runs, or has not applied the load of another sender, or if Manager does not run; ConflictError while
    another Extract sends a load; OSError.
    """
    group = group.upper()
    found = _require_task(home, group)
    if state_of(home.process(group, GroupKind.REPLICAT))[0] in ALIVE:
        raise _cannot(
            f"REPLICAT {group} is already applying a load", "wait until it has ended, then START the Extract again"
        )
    _manager(home)
    name = TrailName.parse(task_trail(group), home.root)
    _require_own_load(name, found, sender)
    delete_owner(name, purge=True)
    _save_task(
        home, group, found._replace(options=found.options._replace(task={**found.options.task, _PREPARED: True}))
    )


def _require_own_load(name: TrailName, task: Checkpoint, sender: RemoteGroup | None) -> None:
    """Raise StateError (GGS-00972) if a trail has a load of another sender that was not applied yet, or not completely."""
    owner = owner_of(name)
    is_ended = "ended" in task.options.task and _PREPARED not in task.options.task
    if owner is None or is_ended or (sender is not None and owner.is_same(sender)):
        return
    raise _cannot(
        f"{owner.text} has sent a load to REPLICAT {task.group} that is not applied yet",
        "START that Extract again to complete it; if it no longer exists, run in the target home:"
        f" DELETE RECVPATH {task_trail(task.group)} PURGE",
    )


def start_task(home: Home, group: str, load: str, sender: RemoteGroup | None = None) -> None:
    """Start a task for a load that its trail holds completely; nothing happens if it was started for this load before.

    ``sender``: who asks for it in another home; only who has sent the load knows that it is complete. Raises StateError
    (GGS-00972), and the error of a process that ends immediately.
    """
    group = group.upper()
    found = _require_task(home, group)
    if found.options.task.get("load") == load:
        return
    owner = owner_of(TrailName.parse(task_trail(group), home.root)) if sender is not None else None
    if sender is not None and (owner is None or not owner.is_same(sender)):
        raise _cannot(
            f"{sender.text} has sent no load to REPLICAT {group}", "START the Extract again, to send its load"
        )
    socket = _manager(home)
    begin = TrailPosition(0, 0)
    read = ReadCheckpoint(SourceType.TRAIL, task_trail(group), startup=begin, recovery=begin, current=begin)
    options = found.options._replace(task={"load": load}, completed=(), refused=None, start={})
    changed = found._replace(read=read, latest_csn="", latest_xid="", record_time=0, caught_up=0, options=options)
    _save_task(home, group, changed)
    request(socket, "START", timeout=START_SECONDS, type=str(GroupKind.REPLICAT), group=group)


def _save_task(home: Home, group: str, changed: Checkpoint) -> None:
    with locked(home.lock(group, GroupKind.REPLICAT), f"REPLICAT {group}"):
        checkpoints.save(home.checkpoint(group, GroupKind.REPLICAT), changed)


def task_result(home: Home, group: str, load: str) -> TaskResult | None:
    """Return how a task that was started for a load has ended; None while it runs. Raises StoreError."""
    group = group.upper()
    if state_of(home.process(group, GroupKind.REPLICAT))[0] in ALIVE:
        return None
    done = checkpoints.load(home.checkpoint(group, GroupKind.REPLICAT)).options.task
    if done.get("load") != load:
        return TaskResult(error="it was started for another load")
    if "ended" not in done:
        return TaskResult(int(done.get("rows", 0)), "it was stopped or killed before it had applied everything")
    return TaskResult(int(done.get("rows", 0)), str(done.get("error", "")))


class TaskEnding(Ending):
    """Ends a task when it has applied its whole trail."""

    def __init__(self, context: GroupContext) -> None:
        super().__init__(context, RunEnd())
        self._runner = context.runner
        self.is_reached = False

    def trail_read(self) -> None:
        self.is_reached = True
        self._runner.stop()


def run_task(context: GroupContext, ending: TaskEnding, run: Callable[[], None]) -> None:
    """Run a task's Replicat and keep its result; remove the load if it was applied.

    Raises StateError (GGS-00972) if no Extract has started it.
    """
    options = context.checkpoint.options
    if not options.task.get("load") or "ended" in options.task:
        raise started_by_extract(context.group)
    try:
        run()
    except GgsError as error:
        kept = f"its load is kept in {task_trail(context.group)} until the next one"
        _keep(context, ended=True, error=f"{error.code} {error.message}; {kept}")
        raise
    if ending.is_reached:
        with contextlib.suppress(ConflictError, DiskError, OSError):  # the next load removes it
            delete_owner(TrailName.parse(task_trail(context.group), context.home.root), purge=True)
    _keep(context, **({"ended": True} if ending.is_reached else {}))


def started_by_extract(group: str) -> StateError:
    """Return the error of starting a task manually."""
    return _cannot(
        f"REPLICAT {group} is a task (SPECIALRUN): the Extract with RMTTASK REPLICAT, GROUP {group.lower()} starts it",
        "START that Extract",
    )


def _keep(context: GroupContext, **facts: Any) -> None:
    tables = context.statistics.snapshot()["tables"]
    rows = sum(sum(each["counts"]["total"].values()) for each in tables)
    options = context.checkpoint.options
    task = {**options.task, "rows": rows, **facts}
    context.save(context.checkpoint._replace(options=options._replace(task=task)))


def _require_task(home: Home, group: str) -> Checkpoint:
    path = home.checkpoint(group, GroupKind.REPLICAT)
    if not path.exists():
        raise _cannot(
            f"REPLICAT {group} does not exist in the target home", f"ADD REPLICAT {group.lower()}, SPECIALRUN there"
        )
    found = checkpoints.load(path)
    if not found.options.special:
        raise _cannot(
            f"REPLICAT {group} of the target home is not a task",
            f"ADD REPLICAT …, SPECIALRUN there for RMTTASK, not {group}",
        )
    if not home.parameters(group).exists():
        raise _cannot(
            f"REPLICAT {group} has no parameter file in the target home", f"EDIT PARAMS {group.lower()} there"
        )
    return found


def _manager(home: Home) -> str:
    state, entry = state_of(home.manager)
    if state is not ProcessState.RUNNING or entry is None:
        raise _cannot("Manager is not running in the target home, so the task cannot be started", "START MANAGER there")
    return entry.socket


def _cannot(text: str, hint: str) -> StateError:
    return StateError(text, code=CANNOT_RUN, hint=hint)
