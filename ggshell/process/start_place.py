"""Where START asked a Replicat to go on: kept in its checkpoint file until the target has confirmed something behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.trail import TrailName, TrailReader
from ggshell.trail.finding import position_of_csn
from ggshell.trail.span import behind_transaction
from ggshell.types import Csn, TrailPosition

OPTION = "start"
ADDED = "added"
"""An option that stands until the first run has a checkpoint: whether ADD REPLICAT named a place."""
FIRST, PLACED = "first", "placed"
_ANYWHERE = TrailPosition(-1, -1)


class StartPlace(NamedTuple):
    """ATCSN, AFTERCSN or SKIPTRANSACTION; ``base`` is where the group stood when it was asked for."""

    csn: str = ""
    after: bool = False
    skip: bool = False
    base: TrailPosition = _ANYWHERE

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StartPlace | None:
        """What a checkpoint's options hold; None for nothing."""
        kept = options.get(OPTION)
        return cls(kept["csn"], kept["after"], kept["skip"], TrailPosition(*kept["base"])) if kept else None

    def as_option(self) -> dict[str, Any]:
        return {**self._asdict(), "base": list(self.base)}

    def position(self, name: TrailName, present: TrailPosition) -> TrailPosition:
        """Where to go on: never before the present place, since what lies before it is applied already.

        A transaction is skipped once: not again when the group has moved on since it was asked to.
        """
        if self.skip:
            return behind_transaction(name, present) if self.base in (_ANYWHERE, present) else present
        least = Csn.parse(self.csn)
        found = position_of_csn(name, least._replace(value=least.value + self.after))
        return max(found or _end(name) or present, present)


def _end(name: TrailName) -> TrailPosition | None:
    reader = TrailReader(name)
    try:
        return reader.end()
    finally:
        reader.close()
