"""What a move is about; every step of ``ggshell move`` takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROUPS: Final = "MV"
"""How the names of the groups of a move begin: MVEXT1, MVREP1, MVEXT2 and MVREP2."""
LONGEST_GROUPS: Final = 4
"""A group name has at most eight characters."""


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """What a move is about: two logins of the credential store, and the schemas to move (empty: all).

    ``groups``: how the names of its groups begin. Moves of several databases of one server need different names, because
    the names of slots are unique in a server. ``others``: if all schemas are moved, those of the target that were there
    before and are left alone; None if the user has chosen the schemas.
    """

    source: str
    target: str
    schemas: tuple[str, ...] = ()
    jobs: int = 4
    groups: str = GROUPS
    others: tuple[str, ...] | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """What cannot change after the move has begun."""
        return self.source, self.target, self.groups
