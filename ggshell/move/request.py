"""What a move is about; every step of ``ggshell move`` takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """What a move is about: two logins of the credential store, and the schemas to move (empty: all)."""

    source: str
    target: str
    schemas: tuple[str, ...] = ()
    jobs: int = 4
