"""The frame of every group's process: lock, report, control socket, process file, and a reported end."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ggshell.clock import Clock, SystemClock, local_text
from ggshell.connectors.login import connection_string
from ggshell.connectors.registry import connector_for, delivery_connector, source_connector
from ggshell.errors import (
    OUT_OF_MEMORY,
    ConnectionLostError,
    DiskError,
    GgsError,
    HomeMovedError,
    NotFoundError,
    ProcessError,
    StateError,
)
from ggshell.files import locked
from ggshell.groups.control import ControlServer
from ggshell.groups.home_watch import SECONDS, HomeWatch
from ggshell.groups.obstacles import Obstacles
from ggshell.groups.report import Report, Reporting
from ggshell.groups.runner import Answering, Runner, Verb
from ggshell.groups.statistics import Statistics
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReplicatKind, StopStatus
from ggshell.home.events import EventLog, Severity, flat
from ggshell.home.home import Home
from ggshell.home.identity import record_location, require_own
from ggshell.home.process_file import ENDING_SECONDS, WAITS, ProcessState, follow, own_process_file, write_process_file
from ggshell.language.redaction import masked, redacted
from ggshell.links import LINKS
from ggshell.monitoring.group_lag import clock_ahead, clock_text_of
from ggshell.parameters.lines import Parameter
from ggshell.parameters.loading import load, load_replicat
from ggshell.parameters.process_parameters import purges_source
from ggshell.parameters.report_rules import ReportRules, report_rules

READY_VARIABLE = "GGSHELL_READY_FD"
"""The variable with the descriptor of the launcher's pipe.

A byte means that the process is running; a closed pipe without a byte means that it has failed to start.
"""
PROGRAMS = {
    GroupKind.EXTRACT: "Capture",
    GroupKind.REPLICAT: "Delivery",
    GroupKind.PATH: "Distribution",
    GroupKind.RECVPATH: "Distribution",
}
RUN_CODES = {
    GroupKind.EXTRACT: ("OGG-00992", "OGG-00993", "OGG-00991"),
    GroupKind.REPLICAT: ("OGG-00995", "OGG-00996", "OGG-00994"),
    GroupKind.PATH: ("GGS-00611", "GGS-00612", "GGS-00613"),
    GroupKind.RECVPATH: ("GGS-00611", "GGS-00612", "GGS-00613"),
}
"""The event codes of a run: starting, started, stopped. The vendor has no codes for a path in this log."""

PUBLISH_SECONDS = 2.0
"""Seconds between two publications of the answers that are given while the worker is busy."""
Body = Callable[["GroupContext"], None]


class GroupContext:
    """The environment of a group's body. Raises StoreError if the group's checkpoint cannot be read."""

    def __init__(self, home: Home, group: str, kind: GroupKind, clock: Clock, report: Report) -> None:
        self.home = home
        self.group = group.upper()
        self.type = kind
        self.clock = clock
        self.report = report
        self.events = EventLog(home, clock)
        self.path = home.checkpoint(group, kind)
        self.ahead = 0
        self.checkpoint: Checkpoint = checkpoints.load(self.path)
        self.statistics = Statistics(clock)
        self.watch = HomeWatch(home)
        self.record_wait: Callable[[str], None] = lambda _: None
        self._verbs: dict[str, Verb] = {}
        self._waits_since = 0
        self._obstacles = Obstacles(LINKS, clock, self._tell_obstacle, self._record_wait)
        self.answering = Answering(f"{kind} {self.group}", clock.steady, self._obstacles)
        self.control = ControlServer(home.socket(group, kind), self._handle, self.answering)
        self.answering.runner = self.runner = Runner(self.control, clock)
        self.runner.on_stop(self._obstacles.stop)
        self.runner.every(SECONDS, self.watch.check)
        self.reporting = Reporting(ReportRules(), report, self.statistics, clock)
        self._register_common_verbs()
        self.answering.publish(self._verbs)  # requests are also answered while the body is still connecting
        self.runner.every(PUBLISH_SECONDS, lambda: self.answering.publish(self._verbs), at_once=True)

    def report_by(self, rules: ReportRules) -> None:
        """Apply the parameter file's report rules. Call this before the group registers its own ``reporting`` actions."""
        self.reporting = Reporting(rules, self.report, self.statistics, self.clock)
        self.reporting.watch(self.runner)

    def verb(self, name: str, function: Verb, *, live: Verb | None = None) -> None:
        """Register the function that answers a SEND request; a body's function replaces the common one.

        ``live`` answers the request in the control thread while the worker is busy; it may read published state only.
        """
        self._verbs[name] = function
        if live is not None:
            self.answering.live[name] = live

    def waits(self, reason: str) -> None:
        """Record why the group cannot continue, such as a database that does not answer; empty: it continues.

        From then on GETLAG, STATUS, STATS and the process file contain the reason. Any thread can call this.
        """
        if not reason:
            text = ""
        else:
            self._waits_since = self._waits_since or self.clock.now()
            text = f"Waiting since {local_text(self._waits_since)}: {flat(masked(reason))}"
        if text != self.answering.wait:
            self.answering.wait = text
            self._waits_since = self._waits_since if text else 0
            self._record_wait()

    def _record_wait(self) -> None:
        """Write why the group cannot continue to the process file."""
        with contextlib.suppress(DiskError):  # the answers still contain it
            self.record_wait("; ".join(self.answering.waits()))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint file and make ``checkpoint`` the current one.

        Raises DiskError, and HomeMovedError if the home was moved, because the path may belong to another home now.
        """
        self.watch.check()
        self.checkpoint = checkpoint._replace(updated=self.clock.now())
        checkpoints.save(self.path, self.checkpoint)
        self._compare_clocks()

    def _compare_clocks(self) -> None:
        """Compare this process's clock with the file system's, which all processes of the home share."""
        before, self.ahead = self.ahead, clock_ahead(self.path, self.checkpoint, ProcessState.RUNNING)
        if self.ahead and not before:
            text = f"{self.type} {self.group}: {clock_text_of(self.ahead)}; lag values are corrected accordingly."
            self.report.event(Severity.WARNING, "GGS-00605", text)

    def close(self) -> None:
        """Stop answering requests and release the resources."""
        self._obstacles.end()
        self.runner.close()
        moved = self.watch.moved()
        if moved is not None:
            self.control.path = moved.socket(self.group, self.type)
        self.control.close(remove=moved is not None or self.watch.is_home_there)
        self.watch.close()

    def _register_common_verbs(self) -> None:
        self.answering.live["STOP"] = lambda _: self._stop(forced=False)
        self.answering.live["FORCESTOP"] = lambda _: self._stop(forced=True)
        self.verb("STATS", self._stats)
        self.verb("REPORT", lambda _: self._report_statistics())
        self.verb("STATUS", lambda _: {"status": "Starting", "read": {}, "write": []})
        self.verb("GETLAG", lambda _: {"lag_seconds": None, "at_eof": False})

    def _handle(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = self._verbs.get(verb)
        if function is None:
            raise StateError(f"{self.type} {self.group} does not support the request {verb}")
        return self.answering.with_waiting(verb, function(arguments))

    def _tell_obstacle(self, text: str) -> None:
        """Report what the worker is waiting for; a full or hanging disk blocks only this thread."""
        with contextlib.suppress(DiskError):
            self.report.event(Severity.WARNING, WAITS, text)

    def _stop(self, *, forced: bool) -> dict[str, Any]:
        self.runner.stop(forced=forced)
        return {"pid": os.getpid()}

    def _stats(self, arguments: dict[str, Any]) -> dict[str, Any]:
        snapshot = self.statistics.snapshot()
        if arguments.get("reset"):
            self.statistics.reset()
        return snapshot

    def _report_statistics(self) -> dict[str, Any]:
        self.report.statistics(self.statistics.snapshot())
        return {}


class _Life:
    """One run as the process file shows it: the process, its socket and its state."""

    def __init__(self, home: Home, group: str, kind: GroupKind, started: int) -> None:
        self._path = home.process(group, kind)
        self._entry = own_process_file(home.root, ProcessState.STOPPED, "", started)
        self._group = (group, kind)
        self._lock = threading.Lock()

    def move(self, home: Home) -> None:
        """Continue at the home's new path."""
        self._path = home.process(*self._group)

    def turn(self, state: ProcessState, socket: str = "", error: GgsError | None = None) -> None:
        """Change the state and update the process file. ``error``: the one by which the process abends."""
        with self._lock:
            socket = socket or self._entry.socket
            self._entry = self._entry._replace(state=follow(self._entry.state, state), socket=socket, waits="")
            if error is not None:
                self._entry = self._entry._replace(code=error.code, error=flat(masked(str(error))))
            if state is ProcessState.STOPPED:
                self._path.unlink(missing_ok=True)
            else:
                write_process_file(self._path, self._entry)

    def waits(self, reason: str) -> None:
        """Record in the process file why the process waits; empty: it does not. Any thread can call this."""
        with self._lock:
            if self._entry.state is ProcessState.RUNNING and reason != self._entry.waits:
                self._entry = self._entry._replace(waits=reason)
                write_process_file(self._path, self._entry)


def _database(home: Home, group: str, kind: GroupKind) -> str:
    """Return the kind of database for the report's heading; a file that cannot be read is reported later."""
    try:
        options = checkpoints.load(home.checkpoint(group, kind)).options
        if kind is GroupKind.EXTRACT:
            return source_connector(options).vendor
        if options.replicat_kind is ReplicatKind.LAKE:
            return delivery_connector(options.replicat_kind).vendor
        return connector_for(connection_string(home, load_replicat(home.parameters(group), group).login)).vendor
    except GgsError:
        return connector_for("").vendor


def run_group(home: Home, group: str, kind: GroupKind, body: Body, clock: Clock | None = None) -> int:
    """Run a group's body under its lock until it ends; return 0 for a graceful end, 1 for an abend.

    Raises only errors that prevent the start, for the launcher: the group does not exist (NotFoundError), is already running
    (ConflictError), has a damaged checkpoint (StoreError), or belongs to another home (StateError).
    """
    clock = clock or SystemClock()
    name = group.upper()
    _require_existing(home, name, kind)
    home.ensure()
    _require_own(home, name, kind, clock)
    with locked(home.lock(name, kind), f"{kind} {name}", patience=ENDING_SECONDS):
        _require_existing(home, name, kind)  # the command that held it may have deleted it
        report = Report(home, name, PROGRAMS[kind], clock, _database(home, name, kind))
        life = _Life(home, name, kind, clock.now())
        life.turn(ProcessState.STARTING)
        report.opening(home.parameters(name))
        report.event(Severity.INFO, RUN_CODES[kind][0], f"{kind} {name} starting.")
        try:
            context = GroupContext(home, name, kind, clock, report)
        except GgsError as error:
            _abend(report, life, error)
            raise
        context.record_wait = life.waits
        context.runner.install_signals()
        try:
            return _run(context, life, body)
        finally:
            context.close()


def _require_existing(home: Home, name: str, kind: GroupKind) -> None:
    if not home.checkpoint(name, kind).exists():
        raise NotFoundError(f"{kind} {name} does not exist.", hint="use INFO ALL to list the groups")


def _require_own(home: Home, name: str, kind: GroupKind, clock: Clock) -> None:
    """Check that this home owns the group. Raises StateError in a copy of the home that owns it."""
    moved = record_location(home.root)
    if moved:
        EventLog(home, clock).write(Severity.WARNING, "GGS-00806", f"{kind} {name}", moved)
    require_own(home.root, [name], f"START {kind} {name}")


def _run(context: GroupContext, life: _Life, body: Body) -> int:
    report, kind, name = context.report, context.type, f"{context.type} {context.group}"
    try:
        context.save(context.checkpoint._replace(started=context.clock.now(), stop=StopStatus.ABENDED, result=400))
        life.turn(ProcessState.RUNNING, str(context.control.path))
        report.event(Severity.INFO, RUN_CODES[kind][1], f"{name} started.")
        signal_ready()
        only_checks = not kind.is_path and _read_parameters(context)  # a path has no parameter file
        try:
            if not only_checks:
                body(context)
        except ConnectionLostError:
            if not context.runner.stop_requested:
                raise  # otherwise the connection was canceled or lost while the process was stopping
        stop = StopStatus.FORCED if context.runner.forced else StopStatus.GRACEFUL
        context.save(context.checkpoint._replace(stop=stop))
        report.statistics(context.statistics.snapshot())
        report.event(Severity.INFO, RUN_CODES[kind][2], f"{name} stopped normally.")
    except GgsError as error:
        _abend(report, life, _follow_home(context, life, error))
        return 1
    except MemoryError:
        _abend(report, life, ProcessError(OUT_OF_MEMORY, code="GGS-00807"))
        return 1
    except Exception as error:  # noqa: BLE001 - a bug must be reported with its full traceback
        bug = ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999")
        _abend(report, life, bug.with_traceback(error.__traceback__), traceback.format_exc())
        return 1
    life.turn(ProcessState.STOPPED)
    return 0


def _follow_home(context: GroupContext, life: _Life, error: GgsError) -> GgsError:
    """Write the end of a run to the home's new path if it was moved; return the move as the error that ended the run."""
    moved = context.watch.moved()
    if moved is not None:
        context.report.move(moved)
        life.move(moved)
    try:
        context.watch.check()
    except HomeMovedError as reason:
        return reason
    return error


def _read_parameters(context: GroupContext) -> bool:
    """Apply the file's report rules, and report its unsupported parameters; return whether the run only checks the file.

    Raises ParameterError.
    """
    path = context.home.parameters(context.group)
    if not path.exists():
        return False  # the body reports it
    found = load(path, context.type.capitalize()).parameters
    facts = parameter_facts(path, found)
    context.verb("GETPARAMINFO", lambda _: facts)
    for parameter in found:
        if parameter.note:
            context.report.event(Severity.WARNING, "GGS-00103", f"Line {parameter.line}: {parameter.note}")
    context.report_by(report_rules(found))
    if any(parameter.name == "CHECKPARAMS" for parameter in found):
        text = f"CHECKPARAMS: the parameters of {path.name} are valid. The process ends without processing data."
        context.report.event(Severity.INFO, "GGS-00567", text)
        return True
    if purges_source(found):
        from ggshell.groups.source_purge import SourcePurge

        SourcePurge(context)
    return False


def parameter_facts(path: Path, found: Sequence[Parameter]) -> dict[str, Any]:
    """Return the answer to GETPARAMINFO: the file, and its parameters with their values."""
    facts = [(item.name.lower(), _shown(item) or "<enabled>") for item in found]
    return {"file": str(path), "parameters": facts}


def _shown(parameter: Parameter) -> str:
    """Return the text of a parameter after its name, without secrets."""
    return redacted(parameter.text, "parameters")[len(parameter.name) :].strip(" ,;")


def _abend(report: Report, life: _Life, error: GgsError, trace: str = "") -> None:
    """Report the end by an error, as far as possible, because the disk itself may have failed."""
    try:
        if trace:
            report.write(masked(trace))
        report.abend(error)
    finally:
        with contextlib.suppress(DiskError):  # the file of a process that no longer exists also means ABENDED
            life.turn(ProcessState.ABENDED, error=error)


def signal_ready() -> None:
    """Report to the launcher that the process is running."""
    descriptor = os.environ.pop(READY_VARIABLE, "")
    if descriptor:
        with contextlib.suppress(BrokenPipeError):  # the launcher has ended; the process runs anyway
            os.write(int(descriptor), b"!")
        os.close(int(descriptor))
