"""Transactions with DDL in a parallel or coordinated Replicat: everything before is applied first, and all appliers wait.

Such a transaction is applied over the group's own connection, and its commit moves the group's row. A restart therefore
never reads what came before a statement again: those rows may belong to tables that no longer exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ggshell.pipeline.apply.applier import Applier
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.responses import WholeAnswers
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader


class DdlBarrier:
    """The transaction with DDL that is being applied, if any."""

    def __init__(self, own: Delivery, appliers: Sequence[Applier], whole: WholeAnswers) -> None:
        """``own``: a delivery over the group's own connection; ``whole`` outlives the connection."""
        self._own = own
        self._appliers = appliers
        self._whole = whole
        self.open = False

    def known(self, header: TransactionHeader) -> bool:
        """Whether a transaction is known to contain DDL, because it was started again."""
        return self._whole.contains_ddl(header)

    def start_again(self, header: TransactionHeader) -> None:
        """Have a large transaction, of which an applier has applied a part, read again. Raises TransactionAbortedError."""
        self._whole.begin_with_ddl(header)

    def begin(self, held: Iterable[ChangeBatch]) -> None:
        """Begin a transaction with the rows that came before its first statement.

        The appliers must be idle, and the group's row must count everything before as applied."""
        self._own.start()
        self.open = True
        for part in held:
            self._own.feed(part)

    def feed(self, part: ChangeBatch) -> CheckpointRow | None:
        """Apply a part of the open transaction; return the group's row if it ends there, None otherwise."""
        self._own.feed(part)
        if not part.pieces[-1].ends:
            return None
        self._own.flush()
        self.open = False
        for applier in self._appliers:
            applier.forget_tables()
        return self._own.applied

    def flush(self) -> None:
        """Wait until everything that was sent is answered."""
        self._own.flush()

    def abandon(self) -> None:
        """Roll the open transaction back, because the process stops inside it."""
        if self.open:
            self._own.abandon()

    @property
    def oldest(self) -> int:
        """The commit time of the open transaction; 0 if there is none."""
        return self._own.oldest if self.open else 0
