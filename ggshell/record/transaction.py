"""The transactions that rows belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ggshell.types import Csn


class TransactionHeader(NamedTuple):
    """The identity of a committed transaction.

    ``commit_time`` is in microseconds since 1970 UTC. ``restart`` is the position from which the source's log must be read
    to rebuild this and every later transaction (LOGBSN); 0 if the source does not provide it.
    """

    xid: str
    csn: Csn
    commit_time: int
    restart: int = 0


@dataclass(frozen=True, slots=True)
class TransactionPiece:
    """A run of rows of one transaction within a batch: rows ``first`` to ``first + count - 1``.

    A transaction too large for one batch comes in several pieces: ``begins`` is set on the first only, ``ends`` on the last
    only. A piece never has a count of 0.
    """

    header: TransactionHeader
    first: int
    count: int
    begins: bool
    ends: bool


class Completed(NamedTuple):
    """How far transactions are finished: all below ``csn``, and those with this CSN whose ids are in ``xids`` (None: all).

    Transactions may share a CSN (Oracle commits several at one SCN), so a CSN alone does not show which of them a trail
    holds.
    """

    csn: Csn
    xids: frozenset[str] | None = None

    def holds(self, header: TransactionHeader) -> bool:
        """Whether a transaction is finished."""
        if header.csn != self.csn:
            return header.csn < self.csn
        return self.xids is None or header.xid in self.xids

    def along(self, pieces: Sequence[TransactionPiece]) -> Completed:
        """Return the state after these pieces, which follow in commit order."""
        csn = pieces[-1].header.csn
        found: set[str] = set()
        for piece in reversed(pieces):
            if piece.header.csn != csn:
                return Completed(csn, frozenset(found))
            if piece.ends:
                found.add(piece.header.xid)
        if csn != self.csn:
            return Completed(csn, frozenset(found))
        return self if self.xids is None else Completed(csn, self.xids | found)

    def joined(self, other: Completed) -> Completed:
        """Return the union of two states of the same trail: the transactions that either one counts as finished."""
        if self.csn != other.csn:
            return max(self, other, key=lambda item: item.csn)
        if self.xids is None or other.xids is None:
            return Completed(self.csn)
        return Completed(self.csn, self.xids | other.xids)

    def common(self, other: Completed) -> Completed:
        """Return the transactions that two trails both hold."""
        if self.csn != other.csn:
            return min(self, other, key=lambda item: item.csn)
        if self.xids is None or other.xids is None:
            return self if other.xids is None else other
        return Completed(self.csn, self.xids & other.xids)
