"""How far a move has come: one file in the home, written after each step."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ggshell.connectors.move_side import Direction
from ggshell.errors import StateError, StoreError
from ggshell.files import read_json, write_atomically
from ggshell.move.request import MoveRequest

FILE: Final = "move.json"


class Step(StrEnum):
    """The steps that a move completes, in their order. CHECK and VERIFY change nothing and are not stored."""

    PREPARE = "prepare"
    LOAD = "load"
    FOLLOW = "follow"


@dataclass(frozen=True, slots=True)
class Switch:
    """A completed switch. ``time``: when it ended, in microseconds since 1970; ``seconds``: the write downtime.

    ``compared``: whether the rows have been compared since.
    """

    direction: Direction
    time: int
    seconds: float
    compared: bool = False


@dataclass(frozen=True, slots=True)
class MoveState:
    """A move and what it has done.

    ``live``: the direction in which changes flow now, FORWARD while the source is open to clients. ``marker``: the last
    number that was used for a marker. ``closing``: a switch in this direction has begun and has not ended.
    """

    request: MoveRequest
    done: tuple[Step, ...] = ()
    live: Direction = Direction.FORWARD
    closing: Direction | None = None
    marker: int = 0
    switches: tuple[Switch, ...] = ()

    @property
    def last(self) -> Switch | None:
        """The last completed switch."""
        return self.switches[-1] if self.switches else None

    def with_last_compared(self) -> MoveState:
        """The rows have been compared since the last switch."""
        return replace(self, switches=tuple(replace(each, compared=True) for each in self.switches))

    def with_step(self, step: Step) -> MoveState:
        return replace(self, done=tuple(each for each in Step if each in {*self.done, step}))


class MoveFile:
    """The file with the state of the only move of a home."""

    def __init__(self, root: Path) -> None:
        self.path = root / "dirdb" / FILE

    def find(self) -> MoveState | None:
        """Return the state, or None if there is no move. Raises StoreError if the file is damaged."""
        try:
            return _state(read_json(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path} cannot be read: {error}", hint="restore it from a backup, or finish the move manually"
            ) from error

    def get(self) -> MoveState:
        """Return the state. Raises StateError if there is no move."""
        found = self.find()
        if found is None:
            raise StateError(
                "no move has been prepared in this home", code="GGS-01251", hint="run ggshell move prepare first"
            )
        return found

    def put(self, state: MoveState) -> None:
        """Store the state. Raises DiskError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(asdict(state), indent=2).encode())

    def remove(self) -> None:
        """Remove the state: the move has ended."""
        self.path.unlink(missing_ok=True)


def _state(fields: dict[str, Any]) -> MoveState:
    given = fields["request"]
    others = given.get("others")
    request = MoveRequest(
        **{**given, "schemas": tuple(given["schemas"]), "others": None if others is None else tuple(others)}
    )
    return MoveState(
        request,
        tuple(map(Step, fields["done"])),
        Direction(fields["live"]),
        Direction(fields["closing"]) if fields["closing"] else None,
        int(fields["marker"]),
        tuple(Switch(**{**each, "direction": Direction(each["direction"])}) for each in fields["switches"]),
    )
