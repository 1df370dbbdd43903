"""An administrator's decisions about open transactions: SKIPTRANS drops one, FORCETRANS writes the changes read so far.

A decision is made durable before it takes effect. From then on it is a fact of the log: reading the log again from an
earlier position produces the same rows. A forced transaction commits with its changes up to the cursor ``until`` and
with a CSN of its own, which is higher than that of every earlier commit. Whether a trail already holds it is determined
as for any other transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from ggshell.types import Csn

Cursor = tuple[int, int]
"""A message's position in the log, the same at each reading: the position, and the number of the message there."""
NO_CURSOR: Cursor = (-1, -1)


class Action(StrEnum):
    """What happens to the transaction."""

    SKIP = "SKIPTRANS"
    FORCE = "FORCETRANS"


class Decision(NamedTuple):
    """A decision about one transaction.

    ``name`` is the transaction's id as the database writes it. ``begin`` is the log position where it began, and ``until``
    the cursor that reading had reached at the decision. ``done``: the forced transaction is in the trail. ``ended``: a
    position after its commit or rollback (0: not read yet).
    """

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
        """The cursor up to which changes of the transaction are still wanted."""
        return self.until if self.action is Action.FORCE and not self.done else NO_CURSOR

    def as_option(self) -> dict[str, Any]:
        """Convert to plain values, for a checkpoint file."""
        return {**self._asdict(), "csn": str(self.csn), "until": list(self.until)}

    @classmethod
    def of_option(cls, fields: Mapping[str, Any]) -> Decision:
        position, number = fields["until"]
        typed = {"action": Action(fields["action"]), "csn": Csn.parse(fields["csn"]), "until": (position, number)}
        return cls(**{**fields, **typed})
