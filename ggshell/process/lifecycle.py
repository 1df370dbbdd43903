"""The frame around every group's process: lock, report, control socket, process file, and an end that is always told."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable
from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import GgsError, NotFoundError, ProcessError
from ggshell.files import locked
from ggshell.params.lines import read_parameters
from ggshell.params.reports import ReportRules, report_rules
from ggshell.process.control import ControlServer
from ggshell.process.report import Report, masked
from ggshell.process.reporting import Reporting
from ggshell.process.runner import Runner
from ggshell.process.state import ProcessFile, ProcessState, follow, start_ticks, write_process_file
from ggshell.process.statistics import Statistics
from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType, StopStatus
from ggshell.store.events import EventLog, Severity
from ggshell.store.home import Home

READY_VARIABLE = "GGSHELL_READY_FD"
"""The launcher passes a pipe; one byte says that the process runs, its end without one that it does not."""
PROGRAMS = {GroupType.EXTRACT: "Capture", GroupType.REPLICAT: "Delivery", GroupType.PATH: "Distribution"}
_CODES = {
    GroupType.EXTRACT: ("OGG-00992", "OGG-00993", "OGG-00991"),
    GroupType.REPLICAT: ("OGG-00995", "OGG-00996", "OGG-00994"),
    GroupType.PATH: ("GGS-00611", "GGS-00612", "GGS-00613"),
}
"""The events of a run: starting, started, stopped.  There is no vendor's number for a path in this log."""

Verb = Callable[[dict[str, Any]], dict[str, Any]]
Body = Callable[["GroupContext"], None]


class GroupContext:
    """What a group's body works with.  Raises StoreError when the group's checkpoint cannot be read."""

    def __init__(self, home: Home, group: str, kind: GroupType, clock: Clock, report: Report) -> None:
        self.home = home
        self.group = group.upper()
        self.type = kind
        self.clock = clock
        self.report = report
        self.events = EventLog(home, clock)
        self.path = home.checkpoint(group, kind)
        self.checkpoint: Checkpoint = checkpoints.load(self.path)
        self.statistics = Statistics(clock)
        self._verbs: dict[str, Verb] = {}
        self.control = ControlServer(home.socket(group, kind), self._handle)
        self.runner = Runner(self.control, clock)
        self.reporting = Reporting(ReportRules(), report, self.statistics, clock)
        self._register_common_verbs()

    def report_by(self, rules: ReportRules) -> None:
        """Carry out what the parameter file says of reports; before anything of the group's own hangs on ``reporting``."""
        self.reporting = Reporting(rules, self.report, self.statistics, self.clock)
        self.reporting.watch(self.runner)

    def verb(self, name: str, function: Verb) -> None:
        """Answer a SEND request; the body's own function takes the place of a common one."""
        self._verbs[name] = function

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint file; from then on it is what the group knows of itself.  Raises DiskError."""
        self.checkpoint = checkpoint._replace(updated=self.clock.now())
        checkpoints.save(self.path, self.checkpoint)

    def close(self) -> None:
        """Stop listening."""
        self.control.close()
        self.runner.close()

    def _register_common_verbs(self) -> None:
        self.verb("STOP", lambda _: self._stop(forced=False))
        self.verb("FORCESTOP", lambda _: self._stop(forced=True))
        self.verb("STATS", self._stats)
        self.verb("REPORT", lambda _: self._report_statistics())
        self.verb("STATUS", lambda _: {"status": "Starting", "read": {}, "write": []})
        self.verb("GETLAG", lambda _: {"lag_seconds": None, "at_eof": False})

    def _handle(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = self._verbs.get(verb)
        if function is None:
            raise ProcessError(f"{self.type} {self.group} does not know the request {verb}")
        return function(arguments)

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
    """One run as the process file tells it: who, where its socket is, and in which state."""

    def __init__(self, home: Home, group: str, kind: GroupType, started: int) -> None:
        self._path = home.process(group, kind)
        self._entry = ProcessFile(os.getpid(), start_ticks(os.getpid()) or 0, ProcessState.STOPPED, "", started)

    def turn(self, state: ProcessState, socket: str = "") -> None:
        """Go to another state and say so."""
        socket = socket or self._entry.socket
        self._entry = self._entry._replace(state=follow(self._entry.state, state), socket=socket)
        if state is ProcessState.STOPPED:
            self._path.unlink(missing_ok=True)
        else:
            write_process_file(self._path, self._entry)


def run_group(home: Home, group: str, kind: GroupType, body: Body, clock: Clock | None = None) -> int:
    """Run a group's body under its lock until it ends; 0 for a graceful end, 1 for an abend.

    Raises only what the launcher must hear, since the process never came to run: the group does not exist (NotFoundError),
    runs already (ConflictError), or its checkpoint is damaged (StoreError).
    """
    clock = clock or SystemClock()
    name = group.upper()
    if not home.checkpoint(name, kind).exists():
        raise NotFoundError(f"{kind} {name} does not exist.", hint="INFO ALL lists what there is")
    home.ensure()
    with locked(home.lock(name, kind), f"{kind} {name}"):
        report = Report(home, name, PROGRAMS[kind], clock)
        life = _Life(home, name, kind, clock.now())
        life.turn(ProcessState.STARTING)
        report.opening(home.parameters(name))
        report.event(Severity.INFO, _CODES[kind][0], f"{kind} {name} starting.")
        try:
            context = GroupContext(home, name, kind, clock, report)
        except GgsError as error:
            _abend(report, life, error)
            raise
        context.runner.install_signals()
        try:
            return _run(context, life, body)
        finally:
            context.close()


def _run(context: GroupContext, life: _Life, body: Body) -> int:
    report, kind, name = context.report, context.type, f"{context.type} {context.group}"
    try:
        context.save(context.checkpoint._replace(started=context.clock.now(), stop=StopStatus.ABENDED, result=400))
        life.turn(ProcessState.RUNNING, str(context.control.path))
        report.event(Severity.INFO, _CODES[kind][1], f"{name} started.")
        signal_ready()
        if kind is not GroupType.PATH:  # a path has no parameter file
            _read_parameters(context)
        body(context)
        stop = StopStatus.FORCED if context.runner.forced else StopStatus.GRACEFUL
        context.save(context.checkpoint._replace(stop=stop))
        report.statistics(context.statistics.snapshot())
        report.event(Severity.INFO, _CODES[kind][2], f"{name} stopped normally.")
    except GgsError as error:
        _abend(report, life, error)
        return 1
    except Exception as error:  # noqa: BLE001 - a bug must end in the report, whole
        bug = ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999")
        _abend(report, life, bug.with_traceback(error.__traceback__), traceback.format_exc())
        return 1
    life.turn(ProcessState.STOPPED)
    return 0


def _read_parameters(context: GroupContext) -> None:
    """Carry out what the file says of reports, and tell what of it is not carried out.  Raises ParameterError."""
    path = context.home.parameters(context.group)
    if not path.exists():
        return  # the body says so
    found = read_parameters(path, context.type.capitalize())
    for parameter in found:
        if parameter.note:
            context.report.event(Severity.WARNING, "GGS-00103", f"Line {parameter.line}: {parameter.note}")
    context.report_by(report_rules(found, path))


def _abend(report: Report, life: _Life, error: GgsError, trace: str = "") -> None:
    """Tell the end by an error, whatever of that still works: the disk may be what failed."""
    try:
        if trace:
            report.write(masked(trace))
        report.abend(error)
    finally:
        life.turn(ProcessState.ABENDED)


def signal_ready() -> None:
    """Tell the launcher that the process runs."""
    descriptor = os.environ.pop(READY_VARIABLE, "")
    if descriptor:
        with contextlib.suppress(BrokenPipeError):  # the launcher has gone; the process runs all the same
            os.write(int(descriptor), b"!")
        os.close(int(descriptor))
