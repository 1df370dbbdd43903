"""Runs the scheduled tasks of the service at their times, and keeps what they did.

A task is a document of kind ``task``. What the scheduler knows about it (the next time, the past executions) is a document of
kind ``taskState``, so that a restarted service continues: a time that passed while the service was down is made up once.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from ggshell.clock import Clock, from_datetime
from ggshell.errors import GgsError, StoreError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.language.redaction import masked

TASKS: Final = "task"
OWNER: Final = "owner"
"""The field of a task with the name of the user who gave its command."""
OWNER_IDENTITY: Final = "ownerIdentity"
"""The field with that user's identity, which a user of the same name who is added later does not have."""
_STATES: Final = "taskState"
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_LONGEST_EVERY: Final = 10 * 366 * 86_400
_LONGEST_WAIT: Final = 600.0
"""The seconds after which the scheduler looks at the clock again, in case somebody has set it."""
_LONGEST_OUTPUT: Final = 4096
DEFAULT_HISTORY: Final = 10

Execute = Callable[[str, dict[str, Any], str], str]
"""Carries out a command: the name of its task, the command, the user who created the task; returns what it reports.

Raises GgsError.
"""


class Schedule(NamedTuple):
    """When a task runs: once at a time, or every so often. Microseconds, 0 for the one that does not apply."""

    once: int = 0
    every: int = 0

    def first(self, now: int) -> int:
        return self.once or now + self.every

    def following(self, time: int, now: int) -> int | None:
        """Return the first regular time after now, given one before; None if there is none."""
        return time + ((now - time) // self.every + 1) * self.every if self.every else None


def parse_schedule(schedule: dict[str, Any]) -> Schedule:
    """Read a schedule: ``{"once": time}`` or ``{"every": {"units": "hours", "value": 1}}``. Raises UsageError."""
    kinds = schedule.keys() - {"$schema"}
    if kinds == {"once"}:
        once = schedule["once"]
        return Schedule(once=_time(once.get("at", "") if isinstance(once, dict) else once))
    if kinds == {"every"} and isinstance(schedule["every"], dict):
        units, value = schedule["every"].get("units"), schedule["every"].get("value")
        if not isinstance(units, str) or units not in _UNITS:
            raise UsageError(f"{str(units)[:40]!a} is not a valid unit of a schedule", hint=f"use {', '.join(_UNITS)}")
        if type(value) is int and 1 <= value <= _LONGEST_EVERY // _UNITS[units]:
            return Schedule(every=value * _UNITS[units] * 1_000_000)
        raise UsageError(f"{str(value)[:40]!a} is not a valid number of {units}")
    raise UsageError(
        "a schedule has either once or every", hint='"schedule": {"every": {"units": "hours", "value": 1}}'
    )


def _time(text: object) -> int:
    try:
        found = datetime.fromisoformat(str(text))
        return from_datetime(found if found.tzinfo is not None else found.astimezone())
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{str(text)[:40]!a} is not a valid time", hint="use the form 2030-01-31T08:00:00Z") from error


class TaskScheduler:
    """The tasks of a home and their thread. Any thread can use it; the thread runs between ``start`` and ``close``."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self.tasks = Documents(home, TASKS)
        self._states = Documents(home, _STATES)
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self, execute: Execute, report: Callable[[GgsError], None]) -> None:
        """Start the thread. An execution that the end of the last service interrupted is recorded as killed.

        ``report`` receives the errors of tasks whose documents cannot be read or written. Raises DiskError.
        """
        for name in self.tasks.names():
            with self._lock, contextlib.suppress(StoreError):  # the first round reports it
                state = self._state(name)
                if state.pop("running", None):
                    self._record(name, state, {"status": "killed", "killed": True, "started": state.pop("began", 0)})
        self._thread = threading.Thread(target=self._run, args=(execute, report), name="tasks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def put(self, name: str, task: dict[str, Any]) -> None:
        """Create or replace a task. Its next time stays unless its schedule changed, or it was just enabled."""
        with self._lock:
            before, state = self.tasks.find(name), self._state(name)
            when = (task.get("schedule"), task.get("enabled"))
            if before is None or when != (before.get("schedule"), before.get("enabled")):
                enabled = task.get("schedule") and task.get("enabled")
                state["next"] = parse_schedule(task["schedule"]).first(self._clock.now()) if enabled else None
            self.tasks.put(name, task)
            self._states.put(name, state)
        self._changed.set()

    def disable(self, name: str) -> None:
        """Disable a task: it does not run again by itself. Raises NotFoundError."""
        self.put(name, {**self.tasks.get(name), "enabled": False})

    def run_soon(self, name: str) -> None:
        """Run a task now, whatever its schedule."""
        with self._lock:
            self._states.put(name, {**self._state(name), "soon": True})
        self._changed.set()

    def delete(self, name: str) -> None:
        """Delete a task. Raises NotFoundError."""
        with self._lock:
            self.tasks.delete(name)
            if self._states.find(name) is not None:
                self._states.delete(name)

    def state(self, name: str) -> dict[str, Any]:
        """Return what is known about a task: ``next`` (microseconds), ``running``, ``history`` (the newest last)."""
        with self._lock:
            return self._state(name)

    def run_due(self, execute: Execute) -> int | None:
        """Run every task whose time has come; return the next time in microseconds, None if there is none.

        Raises StoreError, DiskError after all other tasks, if a document cannot be read or written.
        """
        times, errors = [], []
        for name in self.tasks.names():
            try:
                task = self._begin(name)
                if task is not None:
                    self._carry_out(name, task, execute)
                times.append(self.state(name).get("next"))
            except GgsError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return min((time for time in times if time), default=None)

    def _run(self, execute: Execute, report: Callable[[GgsError], None]) -> None:
        while not self._stopped:
            self._changed.clear()
            try:
                following = self.run_due(execute)
                wait = None if following is None else min((following - self._clock.now()) / 1e6, _LONGEST_WAIT)
            except GgsError as error:
                report(error)
                wait = _LONGEST_WAIT
            if wait is None or wait > 0:
                self._changed.wait(wait)

    def _begin(self, name: str) -> dict[str, Any] | None:
        """Return a task if it is due, and note that it runs and when it runs next."""
        with self._lock:
            task, state, now = self.tasks.find(name), self._state(name), self._clock.now()
            due = state.get("next")
            if task is None or not (state.pop("soon", False) or (due and due <= now)):
                return None
            if due and due <= now:
                state["next"] = parse_schedule(task["schedule"]).following(due, now)
            self._states.put(name, {**state, "running": True, "began": now})
        return task

    def _carry_out(self, name: str, task: dict[str, Any], execute: Execute) -> None:
        try:
            result = {
                "status": "stopped",
                "exitCode": 0,
                "output": execute(name, task["command"], task.get(OWNER, "")),
            }
        except GgsError as error:
            result = {"status": "abended", "exitCode": 1, "output": f"{error.code}  {error}"}
        with self._lock:
            state = self._state(name)
            state.pop("running", None)
            result["started"] = state.pop("began", 0)
            if self.tasks.find(name) is not None:
                self._record(name, state, result)

    def _record(self, name: str, state: dict[str, Any], result: dict[str, Any]) -> None:
        """Add an execution to the history; the oldest ones that exceed the task's limit are removed."""
        output = masked(result.get("output", ""))[:_LONGEST_OUTPUT]
        limit = int((self.tasks.find(name) or {}).get("maxHistory") or DEFAULT_HISTORY)
        item = {"killed": False, **result, "output": output, "finished": self._clock.now()}
        self._states.put(name, {**state, "history": [*state.get("history", []), item][-limit:]})

    def _state(self, name: str) -> dict[str, Any]:
        return self._states.find(name) or {}
