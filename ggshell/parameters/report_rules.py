"""When a process writes to its report on its own: REPORT, REPORTCOUNT, REPORTROLLOVER, and the rollovers of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.durations import read_interval
from ggshell.parameters.lines import Parameter
from ggshell.quantities import TimeOfDay

_UNITS = ("seconds", "second", "minutes", "minute", "hours", "hour")


class Schedule(NamedTuple):
    """A time of every day, or of one day of the week (0 is Monday)."""

    hour: int = 0
    minute: int = 0
    weekday: int | None = None

    def after(self, moment: int) -> int:
        """The first scheduled time after a moment. Both are microseconds since 1970."""
        local = to_datetime(moment).astimezone().replace(tzinfo=None)
        day = local.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        ahead = 0 if self.weekday is None else (self.weekday - day.weekday()) % 7
        day += timedelta(days=ahead)
        if day <= local:
            day += timedelta(days=1 if self.weekday is None else 7)
        return from_datetime(day.astimezone())


def schedule(args: Mapping[str, Any]) -> Schedule:
    """The schedule of ``[AT hh:mi] [ON day]``."""
    at, day = args.get("at", TimeOfDay(0, 0)), args.get("on")
    return Schedule(at.hour, at.minute, None if day is None else int(day))


class ReportRules(NamedTuple):
    """The rules for reports.

    ``count_records`` and ``count_seconds``: REPORTCOUNT, at most one of them; ``rate``: also report rate and delta.
    """

    report: tuple[Schedule, ...] = ()
    rollover: tuple[Schedule, ...] = ()
    discard_rollover: tuple[Schedule, ...] = ()
    trail_rollover: tuple[Schedule, ...] = ()
    count_records: int | None = None
    count_seconds: float | None = None
    rate: bool = False


def report_rules(parameters: Iterable[Parameter]) -> ReportRules:
    """The rules among parsed parameters."""
    found = list(parameters)

    def schedules(name: str) -> tuple[Schedule, ...]:
        return tuple(schedule(item.args) for item in found if item.name == name)

    rules = ReportRules(
        schedules("REPORT"), schedules("REPORTROLLOVER"), schedules("DISCARDROLLOVER"), schedules("ROLLOVER")
    )
    for item in found:
        if item.name == "REPORTCOUNT":
            rules = _count(rules, item)
    return rules


def _count(rules: ReportRules, item: Parameter) -> ReportRules:
    number = item.args["number"]
    unit = next((word for word in _UNITS if word in item.args), None)
    return rules._replace(
        count_records=number if unit is None else None,
        count_seconds=None if unit is None else number * read_interval(f"1 {unit}"),
        rate="rate" in item.args,
    )
