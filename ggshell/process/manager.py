"""Manager: starts the processes, watches them, starts them again, and clears old trail files away.

A killed Manager leaves the others running; the next one finds them by their process files.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import signal
import subprocess
from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import ConflictError, GgsError, NotFoundError, ProcessError, StateError
from ggshell.files import locked
from ggshell.params import ManagerParameters, RestartRule, load_manager
from ggshell.process.control import ControlServer
from ggshell.process.launch import spawn
from ggshell.process.lifecycle import signal_ready
from ggshell.process.purge import purge
from ggshell.process.runner import Runner
from ggshell.process.state import ProcessFile, ProcessState, start_ticks, state_of, write_process_file
from ggshell.store.checkpoint import GroupType
from ggshell.store.events import EventLog, Severity
from ggshell.store.home import GroupEntry, Home

KINDS = {GroupType.EXTRACT: "extract", GroupType.REPLICAT: "replicat", GroupType.PATH: "path"}
WATCH_SECONDS = 0.5
PURGE_SECONDS = 60.0
PROGRAM = "ggshell Manager for PostgreSQL, mgr.prm"

GroupId = tuple[str, GroupType]


class Attempts:
    """How often a group was started again, and when it may be again."""

    def __init__(self) -> None:
        self.count = 0
        self.due = 0.0
        self.first = 0.0


def run(home: Home) -> int:
    """Run Manager until it is told to stop."""
    home.ensure()
    with locked(home.root / "dirpcs" / ".manager.lock", "Manager"):
        manager = Manager(home, load_manager(home.parameters("mgr")), SystemClock())
        manager.runner.install_signals()
        try:
            manager.run()
        finally:
            manager.close()
    return 0


def pattern_matches(kind: str, pattern: str, group: GroupId) -> bool:
    """Whether an ``ER|EXTRACT|REPLICAT|DISTPATH pattern`` takes a group."""
    name, type_ = group
    kinds = {
        "ER": (GroupType.EXTRACT, GroupType.REPLICAT),
        "EXTRACT": (GroupType.EXTRACT,),
        "REPLICAT": (GroupType.REPLICAT,),
    }
    return type_ in kinds.get(kind, (GroupType.PATH,)) and fnmatch.fnmatchcase(name, pattern.upper())


class Manager:
    """One run of Manager."""

    def __init__(self, home: Home, parameters: ManagerParameters, clock: Clock) -> None:
        self._home = home
        self._parameters = parameters
        self._clock = clock
        self._log = EventLog(home, clock)
        self._children: dict[GroupId, subprocess.Popen[bytes]] = {}
        self._attempts: dict[GroupId, Attempts] = {}
        self._told: set[GroupId] = set()
        self._control = ControlServer(home.manager.with_suffix(".sock"), self._handle)
        self.runner = Runner(self._control, clock)

    def run(self) -> None:
        pid = os.getpid()
        entry = ProcessFile(
            pid, start_ticks(pid) or 0, ProcessState.RUNNING, str(self._control.path), self._clock.now()
        )
        write_process_file(self._home.manager, entry)
        self._event(Severity.INFO, "OGG-00983", f"Manager started (port {self._parameters.port}).")
        signal_ready()
        self._autostart()
        self.runner.every(WATCH_SECONDS, self._watch)
        self.runner.every(PURGE_SECONDS, self._purge)
        while not self.runner.stop_requested:
            self.runner.wait([], WATCH_SECONDS)
        self._event(Severity.INFO, "OGG-00988", "Manager stopped.")

    def close(self) -> None:
        self._control.close()
        self.runner.close()
        self._home.manager.unlink(missing_ok=True)

    def _event(self, severity: Severity, code: str, text: str) -> None:
        self._log.write(severity, code, PROGRAM, text)

    def _handle(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if verb == "START":
            group = (str(arguments["group"]).upper(), GroupType(arguments["type"]))
            self._attempts.pop(group, None)
            self._start(group)
            return {}
        if verb == "STOP":
            self.runner.stop()
            return {"pid": os.getpid()}
        if verb == "STATUS":
            return {"pid": os.getpid(), "port": self._parameters.port}
        if verb == "PURGE":
            return {"removed": [str(path) for path in self._purge()]}
        if verb == "CHILDSTATUS":
            return {
                "children": [
                    {"group": name, "type": kind, "pid": child.pid} for (name, kind), child in self._children.items()
                ]
            }
        raise ProcessError(f"Manager does not know the request {verb}")

    def _start(self, group: GroupId) -> None:
        name, kind = group
        if not self._home.checkpoint(name, kind).exists():
            raise NotFoundError(f"{kind} {name} does not exist")
        state, _ = state_of(self._home.process(name, kind))
        if state in (ProcessState.RUNNING, ProcessState.STARTING):
            raise ConflictError(f"{kind} {name} is already running.")
        self._event(Severity.INFO, "OGG-00975", f"{kind} {name} starting.")
        self._told.discard(group)
        self._children[group] = spawn(self._home, KINDS[kind], name)

    def _autostart(self) -> None:
        for entry in self._home.groups():
            group = (entry.group, entry.type)
            if any(pattern_matches(kind, pattern, group) for kind, pattern in self._parameters.autostart):
                with contextlib.suppress(ConflictError):
                    self._try_start(group)

    def _try_start(self, group: GroupId) -> None:
        try:
            self._start(group)
        except (ConflictError, StateError):
            raise
        except GgsError as error:
            self._event(Severity.ERROR, error.code, str(error))

    def _watch(self) -> None:
        """See who has ended, and start again whom the rules name."""
        for group, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[group]
        for entry in self._home.groups():
            group = (entry.group, entry.type)
            state, _ = state_of(self._home.process(entry.group, entry.type))
            if state is ProcessState.ABENDED:
                self._abended(entry, group)

    def _abended(self, entry: GroupEntry, group: GroupId) -> None:
        if group not in self._told:
            self._told.add(group)
            self._event(Severity.WARNING, "OGG-00965", f"{entry.type} {entry.group} is abended.")
        rule = next(
            (rule for rule in self._parameters.autorestart if pattern_matches(rule.kind, rule.pattern, group)), None
        )
        if rule is not None and self.may_restart(rule, self._attempts.setdefault(group, Attempts())):
            with contextlib.suppress(ConflictError):
                self._try_start(group)

    def may_restart(self, rule: RestartRule, attempts: Attempts) -> bool:
        """Retries count within the reset time; each waits for the rule's time after the abend was seen."""
        now = self._clock.steady()
        if attempts.count and now - attempts.first > rule.reset:
            attempts.count, attempts.due = 0, 0.0
        if attempts.count >= rule.retries:
            return False
        if not attempts.due:
            attempts.due = now + rule.wait
        if now < attempts.due:
            return False
        if not attempts.count:
            attempts.first = now
        attempts.count += 1
        attempts.due = 0.0
        return True

    def _purge(self) -> list[Any]:
        removed = []
        for rule in self._parameters.purge:
            for path in purge(self._home, rule, self._clock.now()):
                removed.append(path)
                self._event(Severity.INFO, "OGG-00957", f"Purged old trail file {path}.")
        return removed


def kill(home: Home, group: str, kind: GroupType) -> int:
    """End a process at once; its pid.  Raises StateError when it does not run."""
    state, entry = state_of(home.process(group, kind))
    if entry is None or state not in (ProcessState.RUNNING, ProcessState.STARTING):
        raise StateError(f"{kind} {group} is not running.")
    os.kill(entry.pid, signal.SIGKILL)
    return entry.pid
