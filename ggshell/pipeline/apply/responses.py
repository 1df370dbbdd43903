"""Answers to an operation that a target refuses: REPERROR's rules, HANDLECOLLISIONS and similar parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ggshell.errors import TransactionAbortedError
from ggshell.pipeline.apply.conflicts import Resolver
from ggshell.pipeline.apply.error_rules import DEFAULT, NO_DATA, UNIQUE, ErrorRule, ErrorRules, Response, Switches
from ggshell.pipeline.apply.target import Refusal, TableMapping
from ggshell.record.change import ChangeBatch
from ggshell.record.fields import split_image
from ggshell.record.image import encode_image
from ggshell.record.operation import KEY_UPDATES, IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName

Wanted = Callable[[TableName], bool]
_ABEND = ErrorRule(DEFAULT, Response.ABEND)
_NO_SWITCHES = Switches()


class Exceptions(Protocol):
    """Builds the exceptions rows of a refused operation."""

    def operations(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        """Return the exceptions rows of a refused operation, each a batch of one row; none if no MAP defines them."""
        ...


class Responses:
    """The answers to refusals. Collision handling can be switched while Replicat runs (SEND … HANDLECOLLISIONS).

    1. REPERROR in a MAP statement takes precedence over the file's rules; an error without a rule abends.
    2. With collision handling, an insert of an existing row becomes an update; a key update of a missing row becomes an
       insert; a key update to an existing key replaces that row; an update or delete of a missing row is skipped.
    3. ``override_duplicates`` does only the first of these; ``insert_missing`` turns every update of a missing row into an
       insert.
    4. A switch applies to the MAP statements below it, or to the MAP statement that contains it.
    """

    def __init__(
        self,
        rules: Sequence[ErrorRule] = (),
        *,
        switches: Switches = _NO_SWITCHES,
        own_switches: Sequence[tuple[str, Switches]] = (),
        own_rules: bool = False,
    ) -> None:
        """``own_switches``: the targets of MAP statements with other switches; ``own_rules``: one has its own REPERROR."""
        self._rules = ErrorRules(rules)
        self.whole = WholeAnswers()
        self._switches = switches
        self._own_switches = tuple(own_switches)
        self._sent: bool | None = None
        self._of_tables: tuple[tuple[str, Wanted, bool], ...] = ()
        self._own_rules = own_rules
        self.exceptions: Exceptions | None = None
        self.resolver: Resolver | None = None

    @property
    def active(self) -> bool:
        """Whether any refusal has an answer other than ABEND."""
        others = self._own_rules or any(rule.response is not Response.ABEND for rule in self._rules)
        return others or bool(self.resolver) or self._handles()

    def to(self, refusal: Refusal, mapping: TableMapping | None = None) -> ErrorRule:
        """Return the rule for a refusal; ``mapping``: the mapping of the refused row, None for a commit."""
        own = mapping.refusals if mapping is not None else None
        return self.to_state(NO_DATA if refusal.missing else refusal.state, own)

    def to_state(self, state: str, own: ErrorRules | None = None) -> ErrorRule:
        """Return the rule for an SQLSTATE or a RAISEERROR number; ``own``: the MAP's rules, which take precedence."""
        return (own.of(state) if own is not None else None) or self._rules.of(state) or _ABEND

    def without_exceptions(self, mapping: TableMapping) -> ErrorRule:
        """Return the rule that applies if the response is EXCEPTION and the table has no exceptions MAP."""
        return (
            (mapping.refusals.without_exceptions if mapping.refusals is not None else None)
            or self._rules.without_exceptions
            or _ABEND
        )

    def handle_collisions(self, on: bool, tables: Mapping[str, Wanted] | None = None) -> None:
        """Switch collision handling for all tables, or for the target tables that match a pattern."""
        if not tables:
            self._sent, self._of_tables = on, ()
        self._of_tables += tuple((pattern, wanted, on) for pattern, wanted in (tables or {}).items())

    def collisions_told(self) -> str:
        """Return a sentence that says for which tables collisions are handled."""
        every = self._switches.collisions if self._sent is None else self._sent
        maps = self._own_switches if self._sent is None else ()
        own = [(target, switches.collisions) for target, switches in maps if switches.collisions != every]
        own += [(pattern, on) for pattern, _, on in self._of_tables]
        told = "".join(f", {'on' if on else 'off'} for {pattern}" for pattern, on in own)
        return f"HANDLECOLLISIONS is {'on' if every else 'off'}{told}"

    def _handles(self) -> bool:
        """Whether a switch is on for any table."""
        given = (self._switches, *(switches for _, switches in self._own_switches))
        collisions = any(each.collisions for each in given) if self._sent is None else self._sent
        others = any(each.override_duplicates or each.insert_missing for each in given)
        return collisions or others or any(on for _, _, on in self._of_tables)

    def _switches_of(self, mapping: TableMapping | None) -> Switches:
        own = mapping.switches if mapping is not None else None
        return self._switches if own is None else own

    def collides(self, mapping: TableMapping | None) -> bool:
        """Whether collisions of a table are handled: as the last request for it says, or else as the parameter file says."""
        for _, wanted, on in reversed(self._of_tables):
            if mapping is not None and wanted(mapping.target.name):
                return on
        return self._switches_of(mapping).collisions if self._sent is None else self._sent

    def is_left_out(self, io_type: int, refusal: Refusal, mapping: TableMapping | None = None) -> bool:
        """Whether collision handling skips an operation on a missing row."""
        return self.collides(mapping) and refusal.missing and io_type not in (*KEY_UPDATES, IoType.INSERT)

    def instead(
        self, batch: ChangeBatch, row: int, refusal: Refusal, mapping: TableMapping | None = None
    ) -> tuple[ChangeBatch, ...]:
        """Return the operations that replace the refused one, each as a batch of one row; empty if there are none."""
        collisions, switches = self.collides(mapping), self._switches_of(mapping)
        io_type = int(batch.io_type[row])
        before, after = batch.images(row)
        if refusal.state == UNIQUE:
            overwrite = batch.one(row, IoType.FIELD_COMP, after)
            if io_type == IoType.INSERT and (collisions or switches.override_duplicates):
                return (overwrite,)
            if io_type in KEY_UPDATES and collisions:
                return (batch.one(row, IoType.DELETE, before), overwrite)
        if not refusal.missing or io_type in (IoType.INSERT, IoType.DELETE, IoType.PURGE_DATA):
            return ()
        inserted = switches.insert_missing or (collisions and io_type in KEY_UPDATES)
        return (batch.one(row, IoType.INSERT, _whole(before, after)),) if inserted else ()


def _whole(before: bytes, after: bytes) -> bytes:
    """The after image of a row with the columns that only the before image has: the update did not change these."""
    columns, values = split_image(after)
    old = dict(zip(*split_image(before), strict=True)) if before else {}
    if old.keys() <= set(columns):
        return after
    return encode_image(sorted({**old, **dict(zip(columns, values, strict=True))}.items()))


# Answers about whole transactions, which outlive a connection: TRANSABORT's retries, and verdicts on large
# transactions.
#
# A transaction that must be started again is identified by its CSN and id. TransactionAbortedError passes the request
# up to the Replicat's main loop, which closes the target, waits, and continues reading from the checkpoint row. This
# works for every kind of Replicat and for transactions of any size.


class Verdict(NamedTuple):
    """The decision to skip a whole transaction: TRANSDISCARD or TRANSEXCEPTION, and the refusal that caused it."""

    response: Response
    refusal: Refusal


class WholeAnswers:
    """The retries and verdicts of a run; appliers share this object, but never a transaction."""

    def __init__(self) -> None:
        self._tries: dict[tuple[Csn, str], int] = {}
        self._verdicts: dict[tuple[Csn, str], Verdict] = {}
        self._with_ddl: set[tuple[Csn, str]] = set()

    def try_again(self, header: TransactionHeader, rule: ErrorRule, refusal: Refusal) -> None:
        """Raises TransactionAbortedError while TRANSABORT has retries left; returns if there are none."""
        name = (header.csn, header.xid)
        done = self._tries.get(name, 0)
        if rule.retries is not None and done >= rule.retries:
            return
        self._tries[name] = done + 1
        of = f" of {rule.retries}" if rule.retries is not None else ""
        raise TransactionAbortedError(
            f"{_transaction(header)} is rolled back and will be retried in {rule.delay:g} seconds"
            f" (attempt {done + 1}{of}): {refusal.text}",
            pause=rule.delay,
        )

    def tries(self, header: TransactionHeader) -> int:
        """Return how often a transaction was tried again."""
        return self._tries.get((header.csn, header.xid), 0)

    def begin_again(self, header: TransactionHeader, verdict: Verdict) -> None:
        """Have a large, partly applied transaction read again from its beginning, with a verdict.

        Raises TransactionAbortedError. Returns if the transaction has a verdict already: the answer itself was refused.
        """
        if self._verdicts.setdefault((header.csn, header.xid), verdict) is verdict:
            raise TransactionAbortedError(
                f"{_transaction(header)} is rolled back and will be skipped as a whole"
                f" ({verdict.response}): {verdict.refusal.text}"
            )

    def begin_with_ddl(self, header: TransactionHeader) -> None:
        """Have a large transaction read again, because it contains DDL. Raises TransactionAbortedError."""
        self._with_ddl.add((header.csn, header.xid))
        raise TransactionAbortedError(
            f"{_transaction(header)} is rolled back and will be applied by one session, because it contains DDL"
        )

    def contains_ddl(self, header: TransactionHeader) -> bool:
        """Whether a transaction was started again because it contains DDL."""
        return (header.csn, header.xid) in self._with_ddl

    def verdict(self, header: TransactionHeader) -> Verdict | None:
        """Return the verdict on a transaction from before it was started again; None if there is none."""
        return self._verdicts.get((header.csn, header.xid)) if self._verdicts else None


def _transaction(header: TransactionHeader) -> str:
    return f"transaction {header.xid} (CSN {header.csn})"
