"""Answers about whole transactions, which outlive a connection: TRANSABORT's tries, and what becomes of a large transaction.

A transaction that must be begun anew is named by its CSN and id.  TransactionAbortedError carries the wish up to the run of
the Replicat, which lets go of the target, waits, and reads on from the checkpoint row: so the same way serves every kind of
Replicat, and a transaction of any size.
"""

from __future__ import annotations

from typing import NamedTuple

from ggshell.apply.error_rules import ErrorRule, Response
from ggshell.apply.target import Refusal
from ggshell.errors import TransactionAbortedError
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn


class Verdict(NamedTuple):
    """That no operation of a transaction is applied: TRANSDISCARD or TRANSEXCEPTION, and the refusal that it answers."""

    response: Response
    refusal: Refusal


class WholeAnswers:
    """What a run knows of transactions that it has begun more than once; lanes share it, and never a transaction."""

    def __init__(self) -> None:
        self._tries: dict[tuple[Csn, str], int] = {}
        self._verdicts: dict[tuple[Csn, str], Verdict] = {}

    def try_again(self, header: TransactionHeader, rule: ErrorRule, refusal: Refusal) -> None:
        """Raises TransactionAbortedError while TRANSABORT's tries last; returns when there are none left."""
        name = (header.csn, header.xid)
        done = self._tries.get(name, 0)
        if rule.retries is not None and done >= rule.retries:
            return
        self._tries[name] = done + 1
        of = f" of {rule.retries}" if rule.retries is not None else ""
        raise TransactionAbortedError(
            f"{_transaction(header)} is rolled back, and tried again in {rule.delay:g} seconds"
            f" (try {done + 1}{of}): {refusal.text}",
            pause=rule.delay,
        )

    def tries(self, header: TransactionHeader) -> int:
        """How often a transaction was tried again."""
        return self._tries.get((header.csn, header.xid), 0)

    def begin_anew(self, header: TransactionHeader, verdict: Verdict) -> None:
        """Have a large transaction, of which a part is applied, read again from its begin, with a verdict.

        Raises TransactionAbortedError; returns when it has one already: then the answer itself was refused.
        """
        if self._verdicts.setdefault((header.csn, header.xid), verdict) is verdict:
            raise TransactionAbortedError(
                f"{_transaction(header)} is rolled back, and read again to be passed over whole"
                f" ({verdict.response}): {verdict.refusal.text}"
            )

    def verdict(self, header: TransactionHeader) -> Verdict | None:
        """What was said of a transaction before it was begun anew."""
        return self._verdicts.get((header.csn, header.xid)) if self._verdicts else None


def _transaction(header: TransactionHeader) -> str:
    return f"transaction {header.xid} (CSN {header.csn})"
