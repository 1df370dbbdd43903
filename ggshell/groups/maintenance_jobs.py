"""Maintenance of lakes: Manager starts a process for each one that is due, and reports how it ended.

The process survives Manager. The next Manager finds the time of the last maintenance in the home; if it starts one while the
earlier process still runs, the new one ends at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.connectors.registry import replicat_program
from ggshell.durations import MICROSECONDS
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind, GroupOptions
from ggshell.home.events import ReportEvent, Severity
from ggshell.home.home import Home
from ggshell.home.maintenance import MaintenanceFiles, MaintenanceResult
from ggshell.plurals import counted

DONE, FAILED = "GGS-00738", "GGS-00739"
_BUSY = 3
"""The exit code of a process that found another maintenance of the same lake."""


class _Job(NamedTuple):
    process: subprocess.Popen[bytes]
    before: MaintenanceResult | None


class MaintenanceJobs:
    """The maintenance processes of a home's lakes; ``check`` starts those that are due and reports those that ended."""

    def __init__(self, home: Home, clock: Clock, report_event: ReportEvent) -> None:
        self._home = home
        self._clock = clock
        self._report_event = report_event
        self._jobs: dict[str, _Job] = {}
        self._tried: dict[str, int] = {}

    @property
    def busy(self) -> bool:
        """Whether a maintenance is running."""
        return bool(self._jobs)

    def check(self) -> None:
        for group in [group for group, job in self._jobs.items() if job.process.poll() is not None]:
            self._report(group, self._jobs.pop(group))
        for group, options in self._due():
            self._start(group, options)

    def close(self) -> None:
        """Leave the processes to themselves."""
        for job in self._jobs.values():
            job.process.returncode = job.process.poll() or 0  # this prevents a warning from subprocess

    def _due(self) -> Iterator[tuple[str, GroupOptions]]:
        try:
            entries = self._home.groups()
        except GgsError:
            return  # Manager's scan reports it
        for entry in entries:
            if entry.type is not GroupKind.REPLICAT or entry.checkpoint is None:
                continue
            every = entry.checkpoint.options.maintenance.every
            if not every or entry.group in self._jobs:
                continue
            last = MaintenanceFiles(self._home.root, entry.group).result()
            began = max(self._tried.get(entry.group, 0), last.began if last is not None else 0)
            if self._clock.now() - began >= every * MICROSECONDS:
                yield entry.group, entry.checkpoint.options

    def _start(self, group: str, options: GroupOptions) -> None:
        self._tried[group] = self._clock.now()
        program = replicat_program(options.replicat_kind)
        command = [sys.executable, "-P", "-m", program, "maintain", "--home", str(self._home.root), "--group", group]
        before = MaintenanceFiles(self._home.root, group).result()
        try:
            with self._home.output(f"{group}.maintenance").open("wb") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self._home.root,
                    start_new_session=True,
                )
        except OSError as error:
            self._report_event(
                Severity.WARNING, FAILED, f"Maintenance of REPLICAT {group} cannot be started: {error.strerror}."
            )
            return
        self._jobs[group] = _Job(process, before)

    def _report(self, group: str, job: _Job) -> None:
        result = MaintenanceFiles(self._home.root, group).result()
        if result is None or result == job.before or not result.ended:
            if job.process.returncode != _BUSY:
                output = self._home.output(f"{group}.maintenance")
                self._report_event(
                    Severity.WARNING, FAILED, f"Maintenance of REPLICAT {group} did not end: see {output}."
                )
        elif result.code:
            self._report_event(
                Severity.WARNING, FAILED, f"Maintenance of REPLICAT {group} failed: {result.code} {result.error}"
            )
        else:
            self._report_event(Severity.INFO, DONE, f"Maintenance of REPLICAT {group}: {summary(result)}.")


def summary(result: MaintenanceResult) -> str:
    """What a maintenance did, in words."""
    tables = result.tables
    compacted, into, expired, removed = (
        (sum(counts) for counts in zip(*(table[1:5] for table in tables), strict=True)) if tables else (0, 0, 0, 0)
    )
    return (
        f"{counted(len(tables), 'table')}, {counted(compacted, 'file')} compacted into {into},"
        f" {counted(expired, 'version')} expired, {counted(removed, 'file')} removed"
    )
