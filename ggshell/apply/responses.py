"""What to do when a target refuses an operation: REPERROR's rules, and what HANDLECOLLISIONS and its kin put in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ggshell.apply.error_rules import DEFAULT, NO_DATA, UNIQUE, ErrorRule, ErrorRules, Response
from ggshell.apply.target import Refusal, TableMapping
from ggshell.apply.whole_answers import WholeAnswers
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import KEY_UPDATES, IoType
from ggshell.record.transaction import TransactionPiece

if TYPE_CHECKING:
    from ggshell.apply.conflicts import Resolver


_ABEND = ErrorRule(DEFAULT, Response.ABEND)


class Exceptions(Protocol):
    """What gives a refused operation to an exceptions table."""

    def operations(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        """The operations that tell of a refused one, each a batch of one row; none when no MAP asks for it."""
        ...


class Responses:
    """The answers to refusals.  ``collisions`` may be switched while the Replicat runs (SEND … HANDLECOLLISIONS).

    1. REPERROR within a MAP comes before the file's; an error without a rule is answered with ABEND.
    2. With ``collisions`` an insert of a row that exists becomes an update; an update that moves a missing row to another
       key an insert, and one that moves a row to a key that exists takes that row's place; an update or a delete of a
       missing row is left out.
    3. ``override_duplicates`` does the first of these alone, ``insert_missing`` makes every update of a missing row an insert.
    """

    def __init__(
        self,
        rules: Sequence[ErrorRule] = (),
        *,
        collisions: bool = False,
        override_duplicates: bool = False,
        insert_missing: bool = False,
        own_rules: bool = False,
    ) -> None:
        """``own_rules``: some MAP has REPERROR of its own."""
        self._rules = ErrorRules(rules)
        self.whole = WholeAnswers()
        self.collisions = collisions
        self._override_duplicates = override_duplicates
        self._insert_missing = insert_missing
        self._own_rules = own_rules
        self.exceptions: Exceptions | None = None
        self.resolver: Resolver | None = None

    @property
    def active(self) -> bool:
        """Whether any refusal has another answer than ABEND."""
        others = self._own_rules or any(rule.response is not Response.ABEND for rule in self._rules)
        return others or bool(self.resolver) or self.collisions or self._override_duplicates or self._insert_missing

    def to(self, refusal: Refusal, mapping: TableMapping | None = None) -> ErrorRule:
        """The rule for a refusal; ``mapping``: of the row that was refused, None for a commit."""
        own = mapping.refusals if mapping is not None else None
        return self.to_state(NO_DATA if refusal.missing else refusal.state, own)

    def to_state(self, state: str, own: ErrorRules | None = None) -> ErrorRule:
        """The rule for an SQLSTATE, or for a number that RAISEERROR gives; ``own``: of the MAP, which come first."""
        return (own.of(state) if own is not None else None) or self._rules.of(state) or _ABEND

    def without_exceptions(self, mapping: TableMapping) -> ErrorRule:
        """The rule where EXCEPTION is asked for, and the table has no exceptions MAP."""
        return (mapping.refusals.behind if mapping.refusals is not None else None) or self._rules.behind or _ABEND

    def is_left_out(self, io_type: int, refusal: Refusal) -> bool:
        """Whether collision handling passes over an operation on a missing row."""
        return self.collisions and refusal.missing and io_type not in (*KEY_UPDATES, IoType.INSERT)

    def instead(self, batch: ChangeBatch, row: int, refusal: Refusal) -> tuple[ChangeBatch, ...]:
        """The operations that take the refused one's place, each as a batch of one row; none when nothing does."""
        io_type = int(batch.io_type[row])
        before, after = batch.images(row)
        if refusal.state == UNIQUE:
            overwrite = one_row(batch, row, IoType.FIELD_COMP, after)
            if io_type == IoType.INSERT and (self.collisions or self._override_duplicates):
                return (overwrite,)
            if io_type in KEY_UPDATES and self.collisions:
                return (one_row(batch, row, IoType.DELETE, before), overwrite)
        if not refusal.missing or io_type in (IoType.INSERT, IoType.DELETE, IoType.PURGE_DATA):
            return ()
        inserted = self._insert_missing or (self.collisions and io_type in KEY_UPDATES)
        return (one_row(batch, row, IoType.INSERT, after),) if inserted else ()


def one_row(batch: ChangeBatch, row: int, io_type: int, data: bytes) -> ChangeBatch:
    """A batch of one operation on a row's table, at the row's place in the trail."""
    piece = next(piece for piece in batch.pieces if piece.first <= row < piece.first + piece.count)
    return ChangeBatch(
        tables=batch.tables,
        table=batch.table[row : row + 1],
        io_type=np.array([io_type], dtype=np.uint8),
        position=batch.position[row : row + 1],
        buffer=data,
        start=np.zeros(1, dtype=np.int64),
        length=np.array([len(data)], dtype=np.int64),
        rba=batch.rba[row : row + 1],
        pieces=(TransactionPiece(piece.header, 0, 1, piece.begins, piece.ends),),
        seqno=batch.seqno,
        end_rba=batch.end_rba,
    )
