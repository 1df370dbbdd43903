"""Amounts of time as commands give them."""

from __future__ import annotations

from typing import Final, Literal

from ggshell.service.bodies import Body

SECONDS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
Level = Literal["info", "warning", "critical"]


class Threshold(Body, kw_only=True):
    """A lag from which a level applies."""

    type: Level
    units: Literal["seconds", "minutes", "hours", "days"] = "seconds"
    value: float

    @property
    def seconds(self) -> float:
        return self.value * SECONDS[self.units]
