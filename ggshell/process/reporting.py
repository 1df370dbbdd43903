"""What a process tells by itself while it runs: counts at an interval, statistics at an hour, files begun anew."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.clock import Clock, local_text
from ggshell.params.reports import ReportRules
from ggshell.params.schedule import Schedule
from ggshell.process.report import Report
from ggshell.process.runner import Runner
from ggshell.process.statistics import Statistics

LOOK_SECONDS = 1.0


class Reporting:
    """Carries report rules out; looks once a second.  ``roll_discard`` and ``roll_trail`` are the group's own."""

    def __init__(self, rules: ReportRules, report: Report, statistics: Statistics, clock: Clock) -> None:
        self._rules = rules
        self._report = report
        self._statistics = statistics
        self._clock = clock
        self._begun = self._last_time = clock.steady()
        self._last_count = 0
        self._due: list[tuple[int, Schedule, Callable[[], object]]] = []
        self._at(rules.report, self._tell_statistics)
        self._at(rules.rollover, report.roll)

    def watch(self, runner: Runner) -> None:
        """Look whenever the process waits."""
        runner.every(LOOK_SECONDS, self.look)

    def roll_discard(self, action: Callable[[], object]) -> None:
        """What DISCARDROLLOVER does."""
        self._at(self._rules.discard_rollover, action)

    def roll_trail(self, action: Callable[[], object]) -> None:
        """What ROLLOVER does."""
        self._at(self._rules.trail_rollover, action)

    def look(self) -> None:
        """Do what is due.  Raises DiskError when the report cannot be written."""
        now = self._clock.now()
        for number, (moment, schedule, action) in enumerate(self._due):
            if now >= moment:
                self._due[number] = (schedule.after(now), schedule, action)
                action()
        rules, operations = self._rules, self._statistics.operations
        if rules.count_records is not None:
            if operations // rules.count_records > self._last_count // rules.count_records:
                self._tell_count(operations)
        elif rules.count_seconds is not None and self._clock.steady() - self._last_time >= rules.count_seconds:
            self._tell_count(operations)

    def _at(self, schedules: tuple[Schedule, ...], action: Callable[[], object]) -> None:
        self._due += [(schedule.after(self._clock.now()), schedule, action) for schedule in schedules]

    def _tell_statistics(self) -> None:
        self._report.statistics(self._statistics.snapshot())

    def _tell_count(self, operations: int) -> None:
        """``n records processed``; rate since the start, delta since the last line, both in records per second."""
        now = self._clock.steady()
        text = f"{operations:>12} records processed as of {local_text(self._clock.now())}"
        if self._rules.rate:
            rate = operations / max(now - self._begun, 1e-6)
            delta = (operations - self._last_count) / max(now - self._last_time, 1e-6)
            text += f" (rate {rate:.0f},delta {delta:.0f})"
        self._report.write(text)
        self._last_time, self._last_count = now, operations
