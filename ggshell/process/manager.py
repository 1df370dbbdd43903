"""Manager: starts the processes, watches them, starts them again, tells of lag, and clears old trail files away.

A killed Manager leaves the others running; the next one finds them by their process files.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import ConflictError, DiskError, GgsError, NotFoundError, ProcessError, StateError
from ggshell.files import locked
from ggshell.params.files import ManagerParameters, PurgeRule, load_manager
from ggshell.process import heartbeat_jobs
from ggshell.process.control import ControlServer, request
from ggshell.process.lag_watch import LagRules, judge, lag_seconds, load_lag_rules
from ggshell.process.launch import spawn
from ggshell.process.lifecycle import signal_ready
from ggshell.process.purge import PurgeTimes, purge
from ggshell.process.report import Report
from ggshell.process.restarts import Restarts, rule_takes
from ggshell.process.runner import Runner
from ggshell.process.state import (
    ALIVE,
    ProcessFile,
    ProcessState,
    kill,
    start_ticks,
    state_of,
    write_process_file,
)
from ggshell.process.watch import GroupId, Watch, was_killed
from ggshell.store import checkpoint
from ggshell.store.checkpoint import GroupType, SourceType
from ggshell.store.events import Severity
from ggshell.store.home import Home

KINDS = {GroupType.EXTRACT: "extract", GroupType.REPLICAT: "replicat", GroupType.PATH: "path"}
SCAN_SECONDS = 1.0
PURGE_SECONDS = 60.0
"""How often the purge rules are looked at; each has a frequency of its own."""
IDLE_SECONDS = 60.0
ASK_SECONDS = 20.0
PROGRAM = "Manager"


def run(home: Home) -> int:
    """Run Manager until it is told to stop.  Raises ConflictError when one runs already, ParameterError."""
    home.ensure()
    clock = SystemClock()
    with locked(home.root / "dirpcs" / ".manager.lock", PROGRAM):
        report = Report(home, "MGR", PROGRAM, clock)
        report.opening(home.parameters("mgr"))
        try:
            manager = Manager(home, clock, report)
        except GgsError as error:
            report.abend(error)
            raise
        manager.runner.install_signals()
        try:
            manager.run()
        finally:
            manager.close()
    return 0


class Manager:
    """One run of Manager."""

    def __init__(self, home: Home, clock: Clock, report: Report) -> None:
        self._home = home
        self._clock = clock
        self._report = report
        self._parameters: ManagerParameters = load_manager(home.parameters("mgr"))
        self._lag: LagRules = load_lag_rules(home.parameters("mgr"))
        self._restarts = Restarts(self._parameters.autorestart, clock)
        self._children: dict[GroupId, subprocess.Popen[bytes]] = {}
        self._watch = Watch(home)
        self._told: set[str] = set()
        self._next_lag = clock.steady()
        self._purge_times = PurgeTimes(clock)
        self._control = ControlServer(home.manager.with_suffix(".sock"), self._handle)
        self.runner = Runner(self._control, clock)
        self._heartbeats: heartbeat_jobs.Thread | None = None

    def run(self) -> None:
        """Start what AUTOSTART names, then answer and watch until told to stop."""
        ticks = start_ticks(os.getpid()) or 0
        now = self._clock.now()
        entry = ProcessFile(os.getpid(), ticks, ProcessState.RUNNING, str(self._control.path), now)
        write_process_file(self._home.manager, entry)
        self._event(Severity.INFO, "OGG-00983", f"Manager started (port {self._parameters.port}).")
        signal_ready()
        self._heartbeats = heartbeats = heartbeat_jobs.start(self._home, self._clock, lambda: self._lag)
        self.runner.every(SCAN_SECONDS, lambda: self._tell_all(heartbeats))
        try:
            self._work()
        finally:
            heartbeats.stop()
        self._event(Severity.INFO, "OGG-00938", "Manager is stopping at user request.")

    def _work(self) -> None:
        self._first_look()
        self.runner.every(SCAN_SECONDS, self._scan)
        self.runner.every(PURGE_SECONDS, self._purge_due)
        while not self.runner.stop_requested:
            wait = self._restarts.seconds_to_next()
            ready = self.runner.wait(self._watch.descriptors(), IDLE_SECONDS if wait is None else wait)
            for group in self._watch.ended(ready):
                self._ended(group)
            for group in self._restarts.due():
                self._restart(group)

    def _tell_all(self, heartbeats: heartbeat_jobs.Thread) -> None:
        while not heartbeats.events.empty():
            self._event(*heartbeats.events.get())

    def close(self) -> None:
        """Leave the groups to themselves."""
        self._watch.close()
        self._control.close()
        self.runner.close()
        for child in self._children.values():
            child.returncode = child.poll() or 0  # they live on; nobody waits for them here
        self._home.manager.unlink(missing_ok=True)

    def _event(self, severity: Severity, code: str, text: str) -> None:
        """Tell it; a full disk does not keep Manager from watching."""
        try:
            self._report.event(severity, code, text)
        except DiskError as error:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{code} {text} ({error})\n")

    def _handle(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if "group" in arguments:
            return self._handle_group(verb, _group_of(arguments))
        if verb == "STOP":
            self.runner.stop()
            return {"pid": os.getpid()}
        if verb == "STATUS":
            return {"pid": os.getpid(), "port": self._parameters.port}
        if verb == "CHILDSTATUS":
            return {"children": [self._child(group) for group in self._home.group_names()]}
        if verb == "GETPURGEOLDEXTRACTS":
            return {"rules": [rule._asdict() for rule in self._parameters.purge]}
        if verb == "HEARTBEATS" and self._heartbeats is not None:
            self._heartbeats.look()
            return {}
        if verb == "REFRESH":
            return self._refresh()
        if verb == "PURGE":
            return {"removed": self._purge(self._parameters.purge)}
        raise ProcessError(f"Manager does not know the request {verb}")

    def _handle_group(self, verb: str, group: GroupId) -> dict[str, Any]:
        path, what = self._home.process(*group), f"{group[1]} {group[0]}"
        if verb == "START":
            self._restarts.forget(group)
            self._start(group)
            return {"pid": self._children[group].pid}
        if verb in ("STOP", "FORCESTOP"):
            self._restarts.forget(group)
            state, entry = state_of(path)
            if entry is None or state not in ALIVE:
                raise StateError(f"{what} is not running.", hint=f"its status is {state}")
            return request(entry.socket, verb, timeout=ASK_SECONDS)
        if verb == "KILL":
            self._restarts.forget(group)
            return {"pid": kill(path, what).pid}
        raise ProcessError(f"Manager does not know the request {verb}")

    def _refresh(self) -> dict[str, Any]:
        """Read the parameter file again; one with an error changes nothing."""
        path = self._home.parameters("mgr")
        parameters, lag = load_manager(path), load_lag_rules(path)
        self._parameters, self._lag = parameters, lag
        self._restarts.rules = parameters.autorestart
        return {"port": parameters.port}

    def _child(self, group: GroupId) -> dict[str, Any]:
        state, entry = state_of(self._home.process(*group))
        pid = entry.pid if entry is not None and state in ALIVE else None
        return {"group": group[0], "type": group[1], "state": state, "pid": pid}

    def _start(self, group: GroupId) -> None:
        name, kind = group
        if not self._home.checkpoint(name, kind).exists():
            raise NotFoundError(f"{kind} {name} does not exist.")
        state, _ = state_of(self._home.process(name, kind))
        if state in ALIVE:
            raise ConflictError(f"{kind} {name} is already running.")
        self._event(Severity.INFO, "OGG-00975", f"{kind} {name} starting.")
        self._children[group] = spawn(self._home, KINDS[kind], name)
        self._scan_one(group)

    def _scan_one(self, group: GroupId) -> None:
        """Begin to watch a group that was just started; it may have ended already."""
        for ended in self._watch.scan([group, *self._watch.running()]):
            self._ended(ended)
        state, _ = state_of(self._home.process(*group))
        if state is ProcessState.ABENDED:
            self._ended(group)

    def _first_look(self) -> None:
        """Take over who runs, start whom AUTOSTART names, and see to those that abended while nobody watched."""
        groups = self._home.group_names()
        self._watch.scan(groups)
        for group in groups:
            self.runner.wait([], 0)
            if self.runner.stop_requested:
                return
            state, _ = state_of(self._home.process(*group))
            if state in ALIVE:
                continue
            if any(rule_takes(kind, pattern, group) for kind, pattern in self._parameters.autostart):
                if not self._is_task(group):
                    self._try_to_start(group)
            elif state is ProcessState.ABENDED:
                self._ended(group)

    def _is_task(self, group: GroupId) -> bool:
        """Whether a group reads tables once: AUTOSTART is for those that follow changes."""
        try:
            return checkpoint.load(self._home.checkpoint(*group)).read.source is SourceType.TABLE
        except GgsError:
            return False  # starting it tells what is wrong with its file

    def _try_to_start(self, group: GroupId) -> None:
        try:
            self._start(group)
        except ConflictError:
            return  # somebody was faster
        except GgsError as error:
            self._event(Severity.ERROR, error.code, str(error))
            if state_of(self._home.process(*group))[0] is ProcessState.ABENDED:
                self._ended(group)

    def _restart(self, group: GroupId) -> None:
        """An AUTORESTART whose moment has come, unless somebody stopped, started or deleted the group meanwhile."""
        state, _ = state_of(self._home.process(*group))
        if state is not ProcessState.ABENDED or was_killed(self._home, group):
            self._restarts.forget(group)
            return
        self._event(Severity.INFO, "OGG-00965", f"{group[1]} {group[0]} is restarted automatically.")
        self._try_to_start(group)

    def _scan(self) -> None:
        """Find groups that others started, and ends that no descriptor told."""
        try:
            groups = self._home.group_names()
        except GgsError as error:
            self._warn_once(error)
            return
        for group in self._watch.scan(groups):
            self._ended(group)
        self._look_at_lag()

    def _ended(self, group: GroupId) -> None:
        """A process is no more: say so, and see whether it is to be started again."""
        child = self._children.get(group)
        if child is not None and child.poll() is not None:
            del self._children[group]
        state, _ = state_of(self._home.process(*group))
        what = f"{group[1]} {group[0]}"
        if state is not ProcessState.ABENDED:
            self._restarts.forget(group)
            if state is ProcessState.STOPPED:
                self._event(Severity.INFO, "OGG-00979", f"{what} is down (gracefully).")
        elif was_killed(self._home, group):
            self._restarts.forget(group)
            self._event(Severity.INFO, "OGG-00979", f"{what} is down (killed).")
        else:
            pause = self._restarts.abended(group)
            then = "" if pause is None else f" It will be restarted in {pause:g} seconds."
            self._event(Severity.WARNING, "OGG-00979", f"{what} is down (abended).{then}")

    def _look_at_lag(self) -> None:
        if self._lag.every is None or self._clock.steady() < self._next_lag:
            return
        self._next_lag = self._clock.steady() + self._lag.every
        for entry in self._home.groups():
            state, _ = state_of(self._home.process(entry.group, entry.type))
            if entry.checkpoint is None or state is ProcessState.STOPPED:
                continue
            lag = lag_seconds(entry.checkpoint, self._clock.now(), running=state in ALIVE)
            severity = None if lag is None else judge(self._lag, lag)
            if severity is not None:
                text = f"Lag of {entry.type} {entry.group} is {lag:.0f} seconds."
                self._event(severity, "OGG-00976", text)

    def _purge_due(self) -> None:
        self._purge(self._purge_times.due(self._parameters.purge))

    def _purge(self, rules: Iterable[PurgeRule]) -> list[str]:
        removed = []
        for rule in rules:
            try:
                for path in purge(self._home, rule, self._clock.now()):
                    removed.append(str(path))
                    self._event(Severity.INFO, "OGG-00957", f"Purged old trail file {path}.")
            except GgsError as error:
                self._warn_once(error)
        return removed

    def _warn_once(self, error: GgsError) -> None:
        """What is wrong each minute is told once."""
        if error.message not in self._told:
            self._told.add(error.message)
            self._event(Severity.WARNING, error.code, str(error))


def _group_of(arguments: dict[str, Any]) -> GroupId:
    try:
        return str(arguments["group"]).upper(), GroupType(arguments["type"])
    except (KeyError, ValueError) as error:
        raise ProcessError(f"the request names no kind of group: {error}") from error
