"""The frame around every group's process: lock, report, control socket, process file, and an end that is always told."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

from ggshell.clock import Clock, SystemClock
from ggshell.errors import GgsError, ProcessError
from ggshell.files import locked
from ggshell.process.control import ControlServer
from ggshell.process.report import Report
from ggshell.process.runner import Runner
from ggshell.process.state import ProcessFile, ProcessState, follow, start_ticks, write_process_file
from ggshell.process.statistics import Statistics
from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType, StopStatus
from ggshell.store.events import Severity
from ggshell.store.home import Home

PROGRAMS = {GroupType.EXTRACT: "Capture", GroupType.REPLICAT: "Delivery", GroupType.PATH: "Distribution"}
READY_VARIABLE = "GGSHELL_READY_FD"
"""The launcher passes a pipe; one byte says that the process runs, its end without one that it does not."""

Verb = Callable[[dict[str, Any]], dict[str, Any]]


class GroupContext:
    """What a group's body works with."""

    def __init__(self, home: Home, group: str, kind: GroupType, clock: Clock) -> None:
        self.home = home
        self.group = group.upper()
        self.type = kind
        self.clock = clock
        self.path = home.checkpoint(group, kind)
        self.checkpoint: Checkpoint = checkpoints.load(self.path)
        self.report = Report(home, self.group, PROGRAMS[kind], clock)
        self.statistics = Statistics(clock)
        self._verbs: dict[str, Verb] = {}
        self.control = ControlServer(home.process(group, kind).with_suffix(".sock"), self._handle)
        self.runner = Runner(self.control, clock)
        self.verb("STOP", lambda _: self._stop(forced=False))
        self.verb("FORCESTOP", lambda _: self._stop(forced=True))
        self.verb("STATS", self._stats)
        self.verb("REPORT", lambda _: self._report_statistics())

    def verb(self, name: str, function: Verb) -> None:
        """Answer a SEND request."""
        self._verbs[name] = function

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint file; from then on it is what the group knows of itself.  Raises DiskError."""
        self.checkpoint = checkpoint._replace(updated=self.clock.now())
        checkpoints.save(self.path, self.checkpoint)

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
        lines = ["", "*" * 71, f"{'** Run Time Statistics **':^71}".rstrip(), "*" * 71, ""]
        for table in self.statistics.snapshot()["tables"]:
            lines.append(f"From Table {table['source']} to {table['target']}:")
            for kind, count in table["counts"]["total"].items():
                if kind != "upserts":
                    lines.append(f"       #{kind:>18}: {count:>9}")
        self.report.write("\n".join(lines))
        return {}


def run_group(home: Home, group: str, kind: GroupType, body: Callable[[GroupContext], None]) -> int:
    """Run a group's body under its lock until it ends; 0 for a graceful end, 1 for an abend.

    Raises only before there is a report to write to (the group does not exist, or runs already).
    """
    lock = home.root / "dirpcs" / f".{group.upper()}.{kind.value.lower()}.lock"
    with locked(lock, f"{kind} {group.upper()}"):
        context = GroupContext(home, group, kind, SystemClock())
        context.runner.install_signals()
        try:
            return _run(context, body)
        finally:
            context.control.close()
            context.runner.close()


def _run(context: GroupContext, body: Callable[[GroupContext], None]) -> int:
    report = context.report
    started = context.clock.now()
    state = follow(ProcessState.STOPPED, ProcessState.STARTING)
    _tell(context, state, started)
    report.opening(context.home.parameters(context.group))
    program = f"{context.type} {context.group}"
    report.event(
        Severity.INFO, "OGG-00992" if context.type is GroupType.EXTRACT else "OGG-00995", f"{program} starting."
    )
    context.save(context.checkpoint._replace(started=started, stop=StopStatus.ABENDED, result=400))
    state = follow(state, ProcessState.RUNNING)
    try:
        _tell(context, state, started)
        signal_ready()
        body(context)
        stop = StopStatus.FORCED if context.runner.forced else StopStatus.GRACEFUL
        context.save(context.checkpoint._replace(stop=stop))
        context._report_statistics()
        code = "OGG-00994" if context.type is GroupType.REPLICAT else "OGG-00991"
        report.event(Severity.INFO, code, f"{program} stopped normally.")
        context.home.process(context.group, context.type).unlink(missing_ok=True)
    except GgsError as error:
        _abend(context, state, started, error)
        return 1
    except Exception as error:  # noqa: BLE001 - a bug must end in the report, whole
        report.write(traceback.format_exc())
        _abend(
            context, state, started, ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999")
        )
        return 1
    return 0


def _abend(context: GroupContext, state: ProcessState, started: int, error: GgsError) -> None:
    try:
        context.report.abend(error)
    finally:
        _tell(context, follow(state, ProcessState.ABENDED), started)


def _tell(context: GroupContext, state: ProcessState, started: int) -> None:
    pid = os.getpid()
    entry = ProcessFile(pid, start_ticks(pid) or 0, state, str(context.control.path), started)
    write_process_file(context.home.process(context.group, context.type), entry)


def signal_ready() -> None:
    """Tell the launcher that the process runs."""
    descriptor = os.environ.pop(READY_VARIABLE, "")
    if descriptor:
        os.write(int(descriptor), b"!")
        os.close(int(descriptor))
