"""Runs the scheduled tasks of the service at their times, and keeps what they did.

A task is a document of kind ``task``. What the scheduler knows about it (the next time, the past executions) is a document of
kind ``taskState``, so that a restarted service continues: a time that passed while the service was down is made up once.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from ggshell.clock import Clock, from_datetime
from ggshell.errors import GgsError, ProcessError, StateError, StoreError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.language.redaction import masked
from ggshell.service.background import Background, Problems, Report, as_error
from ggshell.service.task_restarts import RestartRule, planned, restart_rule, without_restarts

TASKS: Final = "task"
OWNER: Final = "owner"
"""The field of a task with the name of the user who gave its command."""
OWNER_IDENTITY: Final = "ownerIdentity"
"""The field with that user's identity, which a user of the same name who is added later does not have."""
_STATES: Final = "taskState"
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_LONGEST_EVERY: Final = 10 * 366 * 86_400
_LONGEST_WAIT: Final = 600.0
"""The seconds after which the scheduler reads the clock again, in case it was changed."""
_LONGEST_OUTPUT: Final = 4096
DEFAULT_HISTORY: Final = 10

MOST_AT_ONCE: Final = 4
"""How many tasks run at the same time. Their commands use the same processes and databases as requests."""
_TIMED_OUT: Final = "GGS-00933"

Execute = Callable[[str, dict[str, Any]], str]
"""Carries out the command of a task, given its name and document; returns what it reports. Raises GgsError."""


def timed_out(seconds: int) -> GgsError:
    """Return the error for a command that was ended because it took longer than the timeout of its task."""
    return ProcessError(f"the command took longer than {seconds} seconds and was ended", code=_TIMED_OUT)


def _disabled(name: str, rule: RestartRule) -> GgsError:
    text = f"task {name} is disabled: it failed again after {rule.retries} restarts"
    return StateError(text, code="GGS-00934", hint="PATCH tasks/NAME with enabled: true")


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


def _executed(name: str, task: dict[str, Any], execute: Execute) -> tuple[dict[str, Any], Exception | None]:
    """Carry out the command of a task; return the result for its history, and an error that ``execute`` has not reported."""
    try:
        return {"status": "stopped", "exitCode": 0, "output": execute(name, task)}, None
    except Exception as error:  # noqa: BLE001 - a bug is the failure of this execution
        found = as_error(error, f"task {name}")
        killed = found.code == _TIMED_OUT
        status = "killed" if killed else "abended"
        result = {"status": status, "killed": killed, "exitCode": 1, "output": f"{found.code}  {found}"}
        return result, None if found is error else found


class TaskScheduler:
    """The tasks of a home. Any thread can use it.

    A thread waits for their times between ``start`` and ``close``; each execution has a thread of its own.
    """

    def __init__(self, home: Home, clock: Clock) -> None:
        self.tasks = Documents(home, TASKS)
        self._states = Documents(home, _STATES)
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._thread: Background | None = None
        self._running: dict[str, threading.Thread] = {}
        self._report: Report = lambda error: None

    def start(self, execute: Execute, report: Report) -> None:
        """Start the thread. An execution that the end of the last service interrupted is recorded as killed.

        ``report`` receives the errors of tasks whose documents cannot be read or written, and says which tasks are disabled.
        Raises DiskError.
        """
        self._report = report
        for name in self.tasks.names():
            with self._lock, contextlib.suppress(StoreError):  # the first round reports it
                state = self._state(name)
                if state.pop("running", None):
                    self._record(name, state, {"status": "killed", "killed": True, "started": state.pop("began", 0)})
        self._thread = Background("tasks", lambda: self._turn(execute), report, self._changed)
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()

    def put(self, name: str, task: dict[str, Any]) -> None:
        """Create or replace a task. Its next time stays unless its schedule changed, or it was just enabled."""
        with self._lock:
            before, state = self.tasks.find(name), self._state(name)
            when = (task.get("schedule"), task.get("enabled"))
            if before is None or when != (before.get("schedule"), before.get("enabled")):
                state = without_restarts(state)
                enabled = task.get("schedule") and task.get("enabled")
                state["next"] = parse_schedule(task["schedule"]).first(self._clock.now()) if enabled else None
            self.tasks.put(name, task)
            self._states.put(name, state)
        self._changed.set()

    def disable(self, name: str) -> None:
        """Disable a task: it does not run again by itself. Raises NotFoundError."""
        self.put(name, {**self.tasks.get(name), "enabled": False})

    def run_soon(self, name: str) -> None:
        """Run a task now, regardless of its schedule."""
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
        """Begin every task whose time has come; return the next time in microseconds, None if there is none.

        At most ``MOST_AT_ONCE`` tasks run, each once at a time. The others wait until one ends; the task that has waited
        longest begins first. Raises GgsError after all other tasks, for example if a document cannot be read or written.
        """
        now, times, errors = self._clock.now(), [], []
        for name in sorted(self.tasks.names(), key=self._due):
            try:
                task = self._begin(name)
                if task is not None:
                    self._start(name, task, execute)
                state = self.state(name)
                times += [state.get("next"), state.get("again")]
            except Exception as error:  # noqa: BLE001 - one task must not keep the others from running
                errors.append(as_error(error, f"task {name}"))
        if errors:
            raise errors[0]
        return min((time for time in times if time and time > now), default=None)

    def _due(self, name: str) -> float:
        """When a task is due, in microseconds; infinity if it is not, or if that cannot be read."""
        try:
            state = self.state(name)
        except GgsError:  # reported by the caller, which reads it again
            return math.inf
        return min((time for time in (state.get("next"), state.get("again")) if time), default=math.inf)

    def wait(self) -> None:
        """Wait until no task runs."""
        for thread in list(self._running.values()):
            thread.join()

    def _turn(self, execute: Execute) -> float | None:
        following = self.run_due(execute)
        return None if following is None else max(0.0, min((following - self._clock.now()) / 1e6, _LONGEST_WAIT))

    def _begin(self, name: str) -> dict[str, Any] | None:
        """Return a task if it is due and may run, and note that it runs and when it runs next."""
        with self._lock:
            task, state, now = self.tasks.find(name), self._state(name), self._clock.now()
            if task is None or name in self._running or len(self._running) >= MOST_AT_ONCE:
                return None
            due, again = state.get("next"), state.get("again")
            if not (state.pop("soon", False) or (due and due <= now) or (again and again <= now)):
                return None
            if due and due <= now:
                state["next"] = parse_schedule(task["schedule"]).following(due, now)
            state.pop("again", None)
            self._states.put(name, {**state, "running": True, "began": now})
        return task

    def _start(self, name: str, task: dict[str, Any], execute: Execute) -> None:
        thread = threading.Thread(target=self._carry_out, args=(name, task, execute), name=f"task {name}", daemon=True)
        with self._lock:
            thread.start()
            self._running[name] = thread

    def _carry_out(self, name: str, task: dict[str, Any], execute: Execute) -> None:
        problems = Problems(f"task {name}", self._report)
        try:
            result, unexpected = _executed(name, task, execute)
            if unexpected is not None:
                problems.tell(name, unexpected)
            with self._lock:
                self._end(name, result)
        except Exception as error:  # noqa: BLE001 - a bug must be reported, and the task must be able to run again
            problems.tell(name, error)
        finally:
            with self._lock:
                del self._running[name]
            self._changed.set()

    def _end(self, name: str, result: dict[str, Any]) -> None:
        """Record an execution, and plan the restart of the task or disable it."""
        task, state = self.tasks.find(name), self._state(name)
        state.pop("running", None)
        result["started"] = state.pop("began", 0)
        if task is None:
            return
        rule = restart_rule(task) if task.get("enabled") else None
        state, disabled = planned(state, rule, self._clock.now(), failed=result["status"] != "stopped")
        if disabled:
            self.tasks.put(name, {**task, "enabled": False})
            state["next"] = None
        self._record(name, state, result)
        if disabled and rule is not None:
            self._report(_disabled(name, rule))

    def _record(self, name: str, state: dict[str, Any], result: dict[str, Any]) -> None:
        """Add an execution to the history; the oldest ones that exceed the task's limit are removed."""
        output = masked(result.get("output", ""))[:_LONGEST_OUTPUT]
        limit = int((self.tasks.find(name) or {}).get("maxHistory") or DEFAULT_HISTORY)
        item = {"killed": False, **result, "output": output, "finished": self._clock.now()}
        self._states.put(name, {**state, "history": [*state.get("history", []), item][-limit:]})

    def _state(self, name: str) -> dict[str, Any]:
        return self._states.find(name) or {}
