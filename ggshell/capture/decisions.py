"""What an administrator decided about an open transaction: SKIPTRANS leaves it out, FORCETRANS writes what there is of it.

A decision is made durable before it has any effect, and is a fact of the log from then on: whoever reads the log again from a
place before it comes to the same rows.  A forced transaction commits with what lies up to the
cursor ``until`` and a CSN of its own, behind that of every commit before; that trails hold it already is
recognised as of any other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from ggshell.types import Csn

Cursor = tuple[int, int]
"""A message's place in the log, the same at each reading: its position, and its number among those of that position."""
NOWHERE: Cursor = (-1, -1)


class Action(StrEnum):
    """What is to become of the transaction."""

    SKIP = "SKIPTRANS"
    FORCE = "FORCETRANS"


class Decision(NamedTuple):
    """``name`` is the transaction's id as the database writes it, ``begin`` where it began, ``until`` where reading stood;
    ``done``: a forced one is in the trail; ``ended``: a place behind its commit or rollback (0: that was not seen yet)."""

    action: Action
    xid: int
    name: str
    begin: int
    until: Cursor
    csn: Csn = Csn(0)
    time: int = 0
    done: bool = False
    ended: int = 0

    @property
    def wanted(self) -> Cursor:
        """Up to where changes of the transaction are still wanted."""
        return self.until if self.action is Action.FORCE and not self.done else NOWHERE

    def as_option(self) -> dict[str, Any]:
        """As plain values, for a checkpoint file."""
        return {**self._asdict(), "csn": str(self.csn), "until": list(self.until)}

    @classmethod
    def of_option(cls, fields: dict[str, Any]) -> Decision:
        position, number = fields["until"]
        typed = {"action": Action(fields["action"]), "csn": Csn.parse(fields["csn"]), "until": (position, number)}
        return cls(**{**fields, **typed})
