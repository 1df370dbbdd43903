"""What an administrator decided about an open transaction: SKIPTRANS leaves it out, FORCETRANS writes what there is of it.

A decision is made durable before it has any effect, and is a fact of the log from then on: whoever reads the log again from a
place before it comes to the same rows.  A forced transaction commits at ``at`` with its first ``messages`` and a CSN of
its own, behind that of every commit before; that trails hold it already is recognised as of any other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from ggshell.types import Csn


class Action(StrEnum):
    """What is to become of the transaction."""

    SKIP = "SKIPTRANS"
    FORCE = "FORCETRANS"


class Decision(NamedTuple):
    """``name`` is the transaction's id as the database writes it, ``begin`` where it began, ``at`` where reading stood;
    ``done``: a forced one is in the trail; ``ended``: a place behind its commit or rollback (0: that was not seen yet)."""

    action: Action
    xid: int
    name: str
    begin: int
    at: int
    messages: int = 0
    csn: Csn = Csn(0)
    time: int = 0
    done: bool = False
    ended: int = 0

    @property
    def most(self) -> int:
        """How many messages of the transaction are still wanted."""
        return self.messages if self.action is Action.FORCE and not self.done else 0

    def as_option(self) -> dict[str, Any]:
        """As plain values, for a checkpoint file."""
        return {**self._asdict(), "csn": str(self.csn)}

    @classmethod
    def of_option(cls, fields: dict[str, Any]) -> Decision:
        return cls(**{**fields, "action": Action(fields["action"]), "csn": Csn.parse(fields["csn"])})
