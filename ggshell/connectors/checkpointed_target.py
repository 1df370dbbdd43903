"""The part of a target that keeps a group's row in the checkpoint table."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ggshell.connectors.sql_checkpoint_tables import SqlCheckpointTables
from ggshell.pipeline.apply.checkpoint_table import row_gone
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName, TrailPosition


class CheckpointedTarget(ABC):
    """A target of one group, with the group's row. Without a ``table`` it stores no position (NODBCHECKPOINT)."""

    def __init__(
        self, group: str, home: str, table: TableName | None, key: int, begin: CheckpointRow, *, has_row: bool
    ) -> None:
        """``begin``: the first row, used when the table has none yet. ``has_row``: the table must have the row."""
        self._group = group
        self._home = home
        self._table = table
        self._key = key
        self._begin = begin
        self._has_row = has_row
        self._file_says: CheckpointRow | None = begin
        self.found = False

    @property
    @abstractmethod
    def _tables(self) -> SqlCheckpointTables:
        """The checkpoint tables of the database. Everything sent must be answered."""

    @property
    def unmarked(self) -> str:
        """Why Extracts of the database cannot tell the group's changes apart; empty if they can."""
        return ""

    @property
    def key(self) -> int:
        """The group's key in the checkpoint table."""
        return self._key

    def checkpoint(self) -> CheckpointRow | None:
        """The group's row; None if there is none."""
        return None if self._table is None else self._tables.read(self._table, self._group, self._key)

    def move(self, position: TrailPosition) -> None:
        """Continue from another position of the trail. Transactions already applied are skipped there."""
        if self._table is not None:
            self._tables.move(self._table, self._group, self._key, position)

    def _require_tables(self, table: TableName) -> None:
        """Raise NotFoundError unless the tables for the position exist."""
        self._tables.require(table)

    def _prepare_row(self, table: TableName) -> None:
        """Make sure that the group's row exists. Raises NotFoundError, and RowGoneError if the row no longer exists."""
        self._require_tables(table)
        if self._has_row and self.checkpoint() is None:
            raise row_gone(self._group, table, self._file_says)
        self.found = not self._tables.insert(table, self._group, self._key, self._begin, self._home)
        self._has_row, self._file_says = True, None
