"""``AT hh:mi``, ``ON day``: moments that come again, in the machine's local time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.errors import ParameterError

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


class Schedule(NamedTuple):
    """A time of each day, or of one day of the week (0 is Monday)."""

    hour: int = 0
    minute: int = 0
    weekday: int | None = None

    def after(self, moment: int) -> int:
        """The first such moment behind another; microseconds since 1970."""
        local = to_datetime(moment).astimezone().replace(tzinfo=None)
        day = local.replace(hour=self.hour, minute=self.minute, second=0, microsecond=0)
        ahead = 0 if self.weekday is None else (self.weekday - day.weekday()) % 7
        day += timedelta(days=ahead)
        if day <= local:
            day += timedelta(days=1 if self.weekday is None else 7)
        return from_datetime(day.astimezone())


def schedule(args: Mapping[str, Any], where: str) -> Schedule:
    """What ``[AT hh:mi] [ON day]`` says.  Raises ParameterError for a time or a day that there is not."""
    result = Schedule()
    if "at" in args:
        match = re.fullmatch(r"(\d{1,2}):(\d{2})", str(args["at"]))
        if match is None or int(match[1]) > 23 or int(match[2]) > 59:
            raise ParameterError(f"{args['at']} is no time of day", where=where, hint="hh:mi, for example 05:30")
        result = result._replace(hour=int(match[1]), minute=int(match[2]))
    if "on" in args:
        day = str(args["on"]).upper()
        if day not in DAYS:
            raise ParameterError(f"{args['on']} is no day of the week", where=where, hint="for example FRIDAY")
        result = result._replace(weekday=DAYS.index(day))
    return result
