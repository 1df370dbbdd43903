"""Counts the operations of commits that the target has confirmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ggshell.pipeline.apply.groups import AnsweredOperation, TransactionGroup
from ggshell.types import TableName

Counted = Callable[[TableName, TableName, int, int], None]
"""Counts operations: source table, target table, operation type, number."""


def _uncounted(source: TableName, target: TableName, io_type: int, number: int) -> None:
    """Count nothing."""


def _no_conflict(operation: AnsweredOperation) -> None:
    """Count nothing."""


class OperationCounters(NamedTuple):
    """The functions that a delivery calls for applied, discarded and ignored operations, and for conflicts."""

    applied: Counted = _uncounted
    discarded: Counted = _uncounted
    ignored: Counted = _uncounted
    conflicts: Callable[[AnsweredOperation], None] = _no_conflict

    def add(self, group: TransactionGroup) -> None:
        """Count the operations of a group whose commit is confirmed."""
        for (source, target, io_type), number in group.counts.items():
            self.applied(source, target, io_type, number)
        for operation in group.answered:
            if operation.discarded:
                self.discarded(operation.source, operation.target, operation.io_type, 1)
            if operation.ignored:
                self.ignored(operation.source, operation.target, operation.io_type, 1)
            if operation.conflict is not None:
                self.conflicts(operation)


NO_COUNTERS = OperationCounters()
