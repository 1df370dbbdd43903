"""Manager: starts, watches and restarts the processes and the service, reports lag, and purges old trail files.

If Manager is killed, the other processes keep running; the next Manager finds them by their process files.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import ConflictError, DiskError, GgsError, HomeMovedError, NotFoundError, ProcessError
from ggshell.files import locked
from ggshell.groups import heartbeat_jobs
from ggshell.groups.control import ControlServer, LaterAnswer, Meanwhile
from ggshell.groups.home_watch import SECONDS as WATCH_SECONDS
from ggshell.groups.home_watch import HomeWatch
from ggshell.groups.lifecycle import parameter_facts, signal_ready
from ggshell.groups.maintenance_jobs import MaintenanceJobs
from ggshell.groups.process_request import request
from ggshell.groups.purge import PurgeTimes, purge, received_rules
from ggshell.groups.report import Report
from ggshell.groups.runner import Runner
from ggshell.groups.service_watch import ServiceWatch
from ggshell.groups.starts import Restarts, Starts, rule_takes
from ggshell.groups.watch import GroupId, Watch, was_killed
from ggshell.home import checkpoint
from ggshell.home.checkpoint import GroupKind
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.process_file import (
    ALIVE,
    ProcessState,
    home_identity_of,
    kill,
    not_running,
    own_process_file,
    state_of,
    write_process_file,
)
from ggshell.monitoring.group_lag import clock_ahead, group_lag
from ggshell.monitoring.lag_rules import LagRules, judge, load_lag_rules
from ggshell.parameters.loading import load, load_manager
from ggshell.parameters.process_parameters import ManagerParameters, PurgeRule
from ggshell.parameters.process_profiles import Profile, profile_of

SCAN_SECONDS = 1.0
PURGE_SECONDS = 60.0
"""Seconds between two checks of the purge rules; each rule has its own frequency."""
MAINTENANCE_SECONDS = 5.0
"""Seconds between two checks for lakes whose maintenance is due."""
IDLE_SECONDS = 60.0
ASK_SECONDS = 20.0
PROGRAM = "Manager"
_READ = ("STATUS", "CHILDSTATUS")


def run(home: Home) -> int:
    """Run Manager until it is stopped; return the exit code.

    Raises ConflictError if a Manager is already running; ParameterError.
    """
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
        except HomeMovedError as error:
            manager.follow_home()
            report.abend(error)
            return 1
        finally:
            manager.close()
    return 0


class Manager:
    """One run of Manager."""

    def __init__(self, home: Home, clock: Clock, report: Report) -> None:
        self._home = home
        self._place = home_identity_of(home.root)
        self._clock = clock
        self._report = report
        self._parameters: ManagerParameters = load_manager(home.parameters("mgr"))
        self._lag: LagRules = load_lag_rules(home.parameters("mgr"))
        self._facts = _parameter_facts(home)
        self._restarts = Restarts(self._parameters.autorestart, clock, lambda group: self._profile(group).restart)
        self._children: dict[GroupId, subprocess.Popen[bytes]] = {}
        self._watch = Watch(home)
        self._starts = Starts(home, clock, self._begins, self._runs, self._fails)
        self._reported: set[str] = set()
        self._next_lag = clock.steady()
        self._purge_times = PurgeTimes(clock)
        self._control = ControlServer(home.manager.with_suffix(".sock"), self._handle, _ManagerMeanwhile(self))
        self.runner = Runner(self._control, clock)
        self._home_watch = HomeWatch(home)
        self._service = ServiceWatch(home, clock, self._event)
        self.runner.every(WATCH_SECONDS, self._home_watch.check)
        self._heartbeats: heartbeat_jobs.Thread | None = None
        self._maintenance = MaintenanceJobs(home, clock, self._event)

    def run(self) -> None:
        """Start the groups that AUTOSTART selects, then answer requests and watch the groups until stopped."""
        entry = own_process_file(self._home.root, ProcessState.RUNNING, str(self._control.path), self._clock.now())
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
        self._first_check()
        self.runner.every(SCAN_SECONDS, self._scan)
        self.runner.every(PURGE_SECONDS, self._purge_due)
        self.runner.every(MAINTENANCE_SECONDS, self._maintenance.check)
        while not self.runner.stop_requested:
            waits = (self._restarts.seconds_to_next(), self._starts.seconds_to_next())
            descriptors = [*self._watch.descriptors(), *self._starts.descriptors()]
            ready = self.runner.wait(descriptors, min([IDLE_SECONDS, *(wait for wait in waits if wait is not None)]))
            self._starts.check(ready)
            for group in self._watch.ended(ready):
                self._ended(group)
            for group in self._restarts.due():
                self._restart(group)

    def _tell_all(self, heartbeats: heartbeat_jobs.Thread) -> None:
        while not heartbeats.events.empty():
            self._event(*heartbeats.events.get())

    def close(self) -> None:
        """Release the resources; the groups keep running."""
        self._watch.close()
        stays = home_identity_of(self._home.root) == self._place
        self._control.close(remove=stays)
        self.runner.close()
        self._home_watch.close()
        self._maintenance.close()
        for child in self._children.values():
            child.returncode = child.poll() or 0  # the groups keep running; this prevents a warning from subprocess
        if stays:
            self._home.manager.unlink(missing_ok=True)

    def follow_home(self) -> None:
        """Switch to the home's new path if it was moved, so that the end is reported there."""
        moved = self._home_watch.moved()
        if moved is not None:
            self._home = moved
            self._report.move(moved)
            self._control.path = moved.manager.with_suffix(".sock")

    def _event(self, severity: Severity, code: str, text: str) -> None:
        """Report an event; a full disk does not stop Manager."""
        try:
            self._report.event(severity, code, text)
        except DiskError as error:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{code} {text} ({error})\n")

    def _handle(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | LaterAnswer:
        if "group" in arguments:
            return self._handle_group(verb, _group_of(arguments))
        if verb in _READ:
            return self.read(verb)
        if verb == "GETPURGEOLDEXTRACTS":
            return {"rules": [rule._asdict() for rule in self._parameters.purge]}
        if verb == "GETPARAMINFO":
            return self._facts
        if verb == "HEARTBEATS" and self._heartbeats is not None:
            self._heartbeats.wake()
            return {}
        if verb == "REFRESH":
            return self._refresh()
        if verb == "PURGE":
            return {"removed": self._purge(self._parameters.purge)}
        raise ProcessError(f"Manager does not support the request {verb}")

    def read(self, verb: str) -> dict[str, Any]:
        """Return an answer that any thread can give: from files and from values that are only replaced as a whole."""
        if verb == "CHILDSTATUS":
            return {"children": [self._child(group) for group in self._home.group_names()]}
        return {"pid": os.getpid(), "port": self._parameters.port}

    def stop(self) -> dict[str, Any]:
        """Request Manager to stop. Any thread can call this."""
        self.runner.stop()
        return {"pid": os.getpid()}

    def _handle_group(self, verb: str, group: GroupId) -> dict[str, Any] | LaterAnswer:
        path, what = self._home.process(*group), f"{group[1]} {group[0]}"
        if verb == "START":
            self._forget(group)
            return self._starts.ask(group)
        if verb in ("STOP", "FORCESTOP"):
            self._forget(group)
            state, entry = state_of(path)
            if entry is None or state not in ALIVE:
                raise not_running(what, state)
            return request(entry.socket, verb, timeout=ASK_SECONDS)
        if verb == "KILL":
            self._forget(group)
            return {"pid": kill(path, what).pid}
        raise ProcessError(f"Manager does not support the request {verb}")

    def _forget(self, group: GroupId) -> None:
        """Cancel what is planned for a group that a user starts, stops or kills."""
        self._restarts.forget(group)
        self._starts.cancel(group)

    def _profile(self, group: GroupId) -> Profile:
        """Return the profile of a group; an empty one, with a warning, if its document is damaged."""
        try:
            return profile_of(self._home, group)
        except GgsError as error:
            self._warn_once(error)
            return Profile()

    def _refresh(self) -> dict[str, Any]:
        """Read the parameter file again; a file with an error changes nothing."""
        path = self._home.parameters("mgr")
        parameters, lag = load_manager(path), load_lag_rules(path)
        self._parameters, self._lag, self._facts = parameters, lag, _parameter_facts(self._home)
        self._restarts.rules = parameters.autorestart
        return {"port": parameters.port}

    def _child(self, group: GroupId) -> dict[str, Any]:
        state, entry = state_of(self._home.process(*group))
        pid = entry.pid if entry is not None and state in ALIVE else None
        return {"group": group[0], "type": group[1], "state": state, "pid": pid}

    def _begins(self, group: GroupId) -> None:
        """Check and report the start of a group. Raises NotFoundError or ConflictError if it cannot be started."""
        name, kind = group
        if not self._home.checkpoint(name, kind).exists():
            raise NotFoundError(f"{kind} {name} does not exist.")
        state, _ = state_of(self._home.process(name, kind))
        if state in ALIVE:
            raise ConflictError(f"{kind} {name} is already running.")
        self._event(Severity.INFO, "OGG-00975", f"{kind} {name} starting.")

    def _runs(self, group: GroupId, child: subprocess.Popen[bytes]) -> None:
        self._children[group] = child
        self._scan_one(group)

    def _fails(self, group: GroupId, error: GgsError) -> None:
        """Report that a group which Manager started by itself failed to start."""
        if isinstance(error, ConflictError):
            return  # the group was already started by another command
        self._event(Severity.ERROR, error.code, str(error))
        if state_of(self._home.process(*group))[0] is ProcessState.ABENDED:
            self._ended(group)

    def _scan_one(self, group: GroupId) -> None:
        """Start watching a group that was just started and may already have ended."""
        for ended in self._watch.scan([group, *self._watch.running()]):
            self._ended(ended)
        state, _ = state_of(self._home.process(*group))
        if state is ProcessState.ABENDED:
            self._ended(group)

    def _first_check(self) -> None:
        """Watch the running groups, start what AUTOSTART and profiles select, and handle the groups that abended earlier."""
        if self._parameters.starts_service:
            self._service.autostart()
        groups = self._home.group_names()
        self._watch.scan(groups)
        for group in groups:
            self.runner.wait([], 0)
            if self.runner.stop_requested:
                return
            state, _ = state_of(self._home.process(*group))
            if state in ALIVE:
                continue
            delay = self._autostart_delay(group)
            if delay is not None:
                if not self._is_task(group):
                    self._starts.begin_after(group, delay)
            elif state is ProcessState.ABENDED:
                self._ended(group)

    def _autostart_delay(self, group: GroupId) -> float | None:
        """Return the seconds after which AUTOSTART or the group's profile starts a group, None if neither does."""
        if any(rule_takes(kind, pattern, group) for kind, pattern in self._parameters.autostart):
            return 0.0
        return self._profile(group).start_delay

    def _is_task(self, group: GroupId) -> bool:
        """Whether a group is an initial load or its task. AUTOSTART applies only to groups that replicate changes."""
        try:
            return checkpoint.load(self._home.checkpoint(*group)).is_task
        except GgsError:
            return False  # the start will report what is wrong with the file

    def _restart(self, group: GroupId) -> None:
        """Restart a group by AUTORESTART, unless it was stopped, started or deleted in the meantime."""
        state, _ = state_of(self._home.process(*group))
        if state is not ProcessState.ABENDED or was_killed(self._home, group):
            self._restarts.forget(group)
            return
        self._event(Severity.INFO, "OGG-00965", f"{group[1]} {group[0]} is restarted automatically.")
        self._starts.begin(group)

    def _scan(self) -> None:
        """Find groups that other commands started, and ends that no descriptor signaled."""
        try:
            groups = self._home.group_names()
        except GgsError as error:
            self._warn_once(error)
            return
        for group in self._watch.scan(groups):
            self._ended(group)
        self._service.check()
        self._look_at_lag()

    def _ended(self, group: GroupId) -> None:
        """Report the end of a process, and schedule its restart if a rule requires it."""
        if self._starts.under_way(group):
            return  # the code that handles starts reports it
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
            ahead = clock_ahead(self._home.checkpoint(entry.group, entry.type), entry.checkpoint, state)
            lag = group_lag(self._home, entry.checkpoint, state, self._clock.now(), ahead).value
            severity = None if lag is None else judge(self._lag, lag / 1e6)
            if severity is not None and lag is not None:
                text = f"Lag of {entry.type} {entry.group} is {lag / 1e6:.0f} seconds."
                self._event(severity, "OGG-00976", text)

    def _purge_due(self) -> None:
        """Purge by PURGEOLDEXTRACTS, and what the aliases of passive Extracts have received."""
        self._purge(self._purge_times.due((*self._parameters.purge, *received_rules(self._home))))

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
        """Report a repeating error only once."""
        if error.message not in self._reported:
            self._reported.add(error.message)
            self._event(Severity.WARNING, error.code, str(error))


class _ManagerMeanwhile(Meanwhile):
    """Manager's answers while it is busy; requests for a group wait until Manager executes them."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def at_once(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        return self._manager.stop() if verb == "STOP" and "group" not in arguments else None

    def instead(self, verb: str, arguments: dict[str, Any], *, begun: bool) -> dict[str, Any] | None:
        if verb in _READ and "group" not in arguments:
            return self._manager.read(verb)
        if "group" in arguments:
            return None
        if verb == "HEARTBEATS":
            return {}
        raise ProcessError(f"Manager is busy: {verb} has not run yet", code="GGS-00603", hint="try again")

    def stays(self, verb: str) -> bool:
        return verb == "HEARTBEATS"


def _parameter_facts(home: Home) -> dict[str, Any]:
    path = home.parameters("mgr")
    return parameter_facts(path, load(path, PROGRAM).parameters if path.exists() else ())


def _group_of(arguments: dict[str, Any]) -> GroupId:
    try:
        return str(arguments["group"]).upper(), GroupKind(arguments["type"])
    except (KeyError, ValueError) as error:
        raise ProcessError(f"the request does not name a valid group: {error}") from error
