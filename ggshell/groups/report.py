"""The report of a run: parameters, events and statistics of a process. Older reports are kept as 0 to 9.

``Reporting`` is what a process writes by itself: counts at an interval, statistics at given times, and file rollovers.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ggshell import __version__
from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError, GgsError
from ggshell.files import remedy
from ggshell.groups.runner import Runner
from ggshell.groups.statistics import Statistics, conflict_counts, ddl_counts
from ggshell.home.events import EventLog, Severity, flat
from ggshell.home.home import Home
from ggshell.language.redaction import masked
from ggshell.monitoring.lag_stats import delivered_lines
from ggshell.parameters.redacted_file import redacted_lines
from ggshell.parameters.report_rules import ReportRules, Schedule

_WIDTH = 71
_STARS = "*" * _WIDTH
_LIMITS = {
    "Address Space Size": resource.RLIMIT_AS,
    "Heap Size": resource.RLIMIT_DATA,
    "File Size": resource.RLIMIT_FSIZE,
    "CPU Time": resource.RLIMIT_CPU,
}
OLDEST = 9


class Report:
    """A group's report file, which starts empty. ``event`` also writes to ggserr.log. Any thread can write."""

    def __init__(self, home: Home, group: str, program: str, clock: Clock, database: str = "") -> None:
        """``database``: the kind of database that the program reads or writes, for the heading; empty for none."""
        self._home = home
        self._group = group
        self._clock = clock
        self._program = f"ggshell {program}" + (f" for {database}" if database else "")
        self._log = EventLog(home, clock)
        self._path = home.report(group)
        self._lock = threading.RLock()
        self.roll()

    def move(self, home: Home) -> None:
        """Continue at the home's new path."""
        self._home, self._path = home, home.report(self._group)
        self._log = EventLog(home, self._clock)

    def roll(self) -> None:
        """Start a new report; the current one becomes number 0, and number 9 is removed. Raises DiskError."""
        try:
            with self._lock:
                self._roll()
        except OSError as error:
            raise DiskError(f"cannot write report {self._path}: {error.strerror}", hint=remedy(self._path)) from error

    def _roll(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            for age in range(OLDEST - 1, -1, -1):
                older = self._home.report(self._group, age)
                if older.exists():
                    older.replace(self._home.report(self._group, age + 1))
            self._path.replace(self._home.report(self._group, 0))
        self._path.touch()

    def write(self, text: str) -> None:
        """Append a text unchanged. Raises DiskError."""
        try:
            with self._lock, self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text + "\n")
        except OSError as error:
            raise DiskError(f"cannot write report {self._path}: {error.strerror}", hint=remedy(self._path)) from error

    def opening(self, parameters: Path) -> None:
        """Write the heading of a new run: program, system, and parameters without secrets. Raises DiskError."""
        system = os.uname()
        title = [_centred(self._program), _centred(f"Version {__version__}"), ""]
        lines = [_STARS, *title, _centred(f"Starting at {local_text(self._clock.now())}"), _STARS, ""]
        lines += ["Operating System Version:", system.sysname, f"Version {system.version}, Release {system.release}"]
        lines += [f"Node: {system.nodename}", f"Machine: {system.machine}"]
        lines += [f"{'':<21}{'soft limit':>16}{'hard limit':>16}", *map(_limit, _LIMITS), ""]
        lines += [f"Process id: {os.getpid()}", "", "Description: ", ""]
        lines += _box("            Running with the following parameters                  ")
        try:
            lines += ["", redacted_lines(parameters.read_text(errors="replace")).rstrip()]
        except OSError:
            lines += ["", f"(no parameter file {parameters})"]
        lines += ["", *_box("                     Run Time Messages                             "), ""]
        self.write("\n".join(lines))

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to the report and to ggserr.log.

        A full disk raises no error: a line that cannot be written goes to standard error (``dirrpt/X.out``).
        """
        text = masked(text)
        line = f"{local_text(self._clock.now())}  {severity:<8}{code}  {flat(text)}"
        program = f"{self._program}, {self._group.lower()}.prm"
        self._or_said(line, lambda: self.write(line))
        self._or_said(line, lambda: self._log.write(severity, code, program, text))

    @staticmethod
    def _or_said(line: str, write: Callable[[], None]) -> None:
        try:
            write()
        except DiskError as error:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{line} ({error})\n")

    def abend(self, error: GgsError) -> None:
        """Report the end by an error: the location in the program, what happened, and what to do."""
        with contextlib.suppress(DiskError):  # the events report it
            self.write("\n".join(["", *_source_context(error)]))
        self.event(Severity.ERROR, error.code, str(error))
        with contextlib.suppress(DiskError):
            self.write("")
        self.event(Severity.ERROR, "OGG-01668", "PROCESS ABENDING.")

    def statistics(self, snapshot: Mapping[str, Any]) -> None:
        """Write the counts of operations by table, for REPORT and at the end of a run. Raises DiskError."""
        now, since = local_text(snapshot["now"]), local_text(snapshot["sections"]["total"])
        lines = ["", *_box("                    Run Time Statistics                            "), ""]
        lines += ["", f"Report at {now} (activity since {since})", ""]
        for table in snapshot["tables"]:
            lines.append(f"From Table {table['source']} to {table['target']}:")
            lines += [f"       #{kind:>18}: {count:>9}" for kind, count in table["counts"]["total"].items()]
            conflicts = conflict_counts(table.get("conflicts", {}).get("total", {}))
            lines += [f"{label:>26}: {count:>9}" for label, count in conflicts]
        if not snapshot["tables"]:
            lines.append("No records were processed.")
        found = snapshot.get("ddl", {})
        ddl = ddl_counts(found, replicat=found.get("errors", 0) > 0)
        lines += ["DDL replication statistics:", *(f"{label:>26}: {count:>9}" for label, count in ddl)] if ddl else []
        lines += [f"Not captured: table {name}: {why}." for name, why in snapshot.get("not_captured", {}).items()]
        lines += delivered_lines(snapshot.get("delivered", ()))
        self.write("\n".join([*lines, ""]))


def _centred(text: str) -> str:
    return f"{text:^{_WIDTH}}".rstrip()


def _box(text: str) -> list[str]:
    return [_STARS, f"**{text}**", _STARS]


def _limit(name: str) -> str:
    shown = [
        "unlimited" if value == resource.RLIM_INFINITY else str(value) for value in resource.getrlimit(_LIMITS[name])
    ]
    return f"{name:<19}: {shown[0]:>16}{shown[1]:>16}"


def _source_context(error: BaseException) -> list[str]:
    """Return the location in the program where an error was raised: the innermost frame in ggshell."""
    place, trace = None, error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("ggshell"):
            place = (module, trace.tb_frame.f_code.co_name, trace.tb_lineno)
        trace = trace.tb_next
    if place is None:
        return []
    module, function, line = place
    return [
        "Source Context :",
        f"  {'SourceModule':<24}: [{module}]",
        f"  {'SourceFunction':<24}: [{function}]",
        f"  {'SourceLine':<24}: [{line}]",
        "",
    ]


CHECK_SECONDS = 1.0


class Reporting:
    """Executes the report rules; checks once a second. The group registers ``roll_discard`` and ``roll_trail``."""

    def __init__(self, rules: ReportRules, report: Report, statistics: Statistics, clock: Clock) -> None:
        self._rules = rules
        self._report = report
        self._statistics = statistics
        self._clock = clock
        self._begun = self._last_time = clock.steady()
        self._last_count = 0
        self._due: list[tuple[int, Schedule, str]] = []
        self._actions: dict[str, Callable[[], object]] = {}
        self._at("report", rules.report, self._tell_statistics)
        self._at("rollover", rules.rollover, report.roll)

    def watch(self, runner: Runner) -> None:
        """Check periodically while the process waits."""
        runner.every(CHECK_SECONDS, self.check)

    def roll_discard(self, action: Callable[[], object]) -> None:
        """Register the action of DISCARDROLLOVER."""
        self._at("discard", self._rules.discard_rollover, action)

    def roll_trail(self, action: Callable[[], object]) -> None:
        """Register the action of ROLLOVER; a new session of a group replaces that of the last one."""
        self._at("trail", self._rules.trail_rollover, action)

    def check(self) -> None:
        """Run the actions that are due. Raises DiskError if the report cannot be written."""
        now = self._clock.now()
        for number, (moment, schedule, name) in enumerate(self._due):
            if now >= moment:
                self._due[number] = (schedule.after(now), schedule, name)
                self._actions[name]()
        rules, operations = self._rules, self._statistics.operations
        if rules.count_records is not None:
            if operations // rules.count_records > self._last_count // rules.count_records:
                self._tell_count(operations)
        elif rules.count_seconds is not None and self._clock.steady() - self._last_time >= rules.count_seconds:
            self._tell_count(operations)

    def _at(self, name: str, schedules: tuple[Schedule, ...], action: Callable[[], object]) -> None:
        if name not in self._actions:
            self._due += [(schedule.after(self._clock.now()), schedule, name) for schedule in schedules]
        self._actions[name] = action

    def _tell_statistics(self) -> None:
        self._report.statistics(self._statistics.snapshot())

    def _tell_count(self, operations: int) -> None:
        """Write ``n records processed``: rate since the start, delta since the last line, both in records per second."""
        now = self._clock.steady()
        text = f"{operations:>12} records processed as of {local_text(self._clock.now())}"
        if self._rules.rate:
            rate = operations / max(now - self._begun, 1e-6)
            delta = (operations - self._last_count) / max(now - self._last_time, 1e-6)
            text += f" (rate {rate:.0f},delta {delta:.0f})"
        self._report.write(text)
        self._last_time, self._last_count = now, operations
