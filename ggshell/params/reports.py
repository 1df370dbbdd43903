"""When a process writes into its report by itself: REPORT, REPORTCOUNT, REPORTROLLOVER, and its files' rollovers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter, read_parameters
from ggshell.params.schedule import Schedule, schedule

_SECONDS = {"seconds": 1, "second": 1, "minutes": 60, "minute": 60, "hours": 3600, "hour": 3600}


class ReportRules(NamedTuple):
    """``count_records`` and ``count_seconds``: REPORTCOUNT, at most one of them; ``rate``: with rate and delta."""

    report: tuple[Schedule, ...] = ()
    rollover: tuple[Schedule, ...] = ()
    discard_rollover: tuple[Schedule, ...] = ()
    trail_rollover: tuple[Schedule, ...] = ()
    count_records: int | None = None
    count_seconds: float | None = None
    rate: bool = False


def load_report_rules(path: Path, process: str) -> ReportRules:
    """The rules in an Extract's or a Replicat's file; none without a file.  Raises ParameterError, StoreError."""
    return report_rules(read_parameters(path, process), path) if path.exists() else ReportRules()


def report_rules(parameters: Iterable[Parameter], path: Path) -> ReportRules:
    """The rules among parsed parameters.  Raises ParameterError for a time that there is not."""
    found = list(parameters)

    def schedules(name: str) -> tuple[Schedule, ...]:
        return tuple(schedule(item.args, f"{path}:{item.line}") for item in found if item.name == name)

    rules = ReportRules(
        schedules("REPORT"), schedules("REPORTROLLOVER"), schedules("DISCARDROLLOVER"), schedules("ROLLOVER")
    )
    for item in found:
        if item.name == "REPORTCOUNT":
            rules = _count(rules, item, path)
    return rules


def _count(rules: ReportRules, item: Parameter, path: Path) -> ReportRules:
    number = item.args["number"]
    if number < 1:
        raise ParameterError("REPORTCOUNT counts from 1", where=f"{path}:{item.line}")
    unit = next((_SECONDS[word] for word in _SECONDS if word in item.args), None)
    return rules._replace(
        count_records=number if unit is None else None,
        count_seconds=None if unit is None else float(number * unit),
        rate="rate" in item.args,
    )
