"""What a move asks of each of its two databases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from ggshell.types import Csn, TableName

if TYPE_CHECKING:
    from ggshell.pipeline.compare.tables import ComparedDatabase
    from ggshell.record.sequences import SequenceValue

OWN_SCHEMA: Final = "ggshell"
"""The schema of ggshell's own objects in both databases."""
MARKERS: Final = TableName(OWN_SCHEMA, "move_markers")
"""A table with one row for each direction. A marker that arrives proves that everything committed before it has arrived."""


class Direction(StrEnum):
    """The two directions of a move. Each has an Extract and a Replicat of its own."""

    FORWARD = "forward"
    BACK = "back"

    @property
    def opposite(self) -> Direction:
        return Direction.BACK if self is Direction.FORWARD else Direction.FORWARD


class MoveSide(Protocol):
    """One database of a move. All methods raise DatabaseError and ConnectionLostError."""

    def schemas(self) -> list[str]:
        """Return the schemas of users, sorted, without those of ggshell and of extensions.

        ``public`` is left out if it contains nothing, or only objects of extensions.
        """
        ...

    def with_tables(self, schemas: Sequence[str]) -> list[str]:
        """Return those of some schemas that contain tables."""
        ...

    def loaded(self, schemas: Sequence[str]) -> dict[TableName, Csn]:
        """Return the tables that LOAD has filled here, each with the last CSN that it contains."""
        ...

    def prepare(self) -> None:
        """Create the table of markers, if it is missing."""
        ...

    def has(self, table: TableName) -> bool:
        """Whether a table exists."""
        ...

    def is_registered(self, extract: str) -> bool:
        """Whether an Extract is registered, so that the log keeps its changes."""
        ...

    def write_marker(self, direction: Direction, number: int) -> None:
        """Commit a marker."""
        ...

    def marker(self, direction: Direction) -> int:
        """Return the last marker of a direction that is committed here."""
        ...

    def close_to_clients(self) -> None:
        """Make transactions of new sessions read-only by default. Sessions of ggshell are not affected."""
        ...

    def open_to_clients(self) -> None:
        """Let new sessions write again."""
        ...

    def end_earlier_sessions(self) -> int:
        """End the sessions of clients that began before the database was closed or opened, and return their number."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether new sessions are read-only by default."""
        ...

    @property
    def captures_ddl(self) -> bool:
        """Whether the event triggers exist and are enabled that write DDL to the log."""
        ...

    def sequences(self, schemas: Sequence[str]) -> list[SequenceValue]:
        """Return the exact values of all sequences of some schemas."""
        ...

    def set_sequences(self, values: Iterable[SequenceValue]) -> None:
        """Set sequences to exact values, all or none."""
        ...

    def object_counts(self, schemas: Sequence[str]) -> dict[str, int]:
        """Return the number of objects of each kind in some schemas, for example ``{"table": 12, "index": 30}``."""
        ...

    def held(self) -> AbstractContextManager[ComparedDatabase]:
        """Hold the database in its present state for a comparison, which other sessions may go on changing."""
        ...

    def remove(self) -> None:
        """Drop what ``prepare`` created, if it is there."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
