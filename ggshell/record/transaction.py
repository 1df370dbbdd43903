"""What is known of the transactions that rows belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ggshell.types import Csn


class TransactionHeader(NamedTuple):
    """What is known of a committed transaction.

    ``commit_time`` is in microseconds since 1970 UTC; ``restart`` is where the source's log must be read from to rebuild
    this and every later transaction (LOGBSN), 0 when the source does not say.
    """

    xid: str
    csn: Csn
    commit_time: int
    restart: int = 0


@dataclass(frozen=True, slots=True)
class TransactionPiece:
    """A run of rows of one transaction within a batch: rows ``first`` to ``first + count - 1``.

    A transaction too large for one batch comes in several pieces; only the first ``begins``, only the last ``ends``.
    A piece never has a count of 0.
    """

    header: TransactionHeader
    first: int
    count: int
    begins: bool
    ends: bool
