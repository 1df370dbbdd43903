"""Find the operation that a target refuses, by applying rows one at a time, and answer or report the refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.column_groups import without_comparisons
from ggshell.pipeline.apply.conflicts import Answer
from ggshell.pipeline.apply.discard import Discarded, DiscardFile
from ggshell.pipeline.apply.error_rules import FOREIGN, UNIQUE, WHOLE, ErrorRule, Response
from ggshell.pipeline.apply.groups import AnsweredOperation, BatchSpan
from ggshell.pipeline.apply.responses import Responses, Verdict
from ggshell.pipeline.apply.target import Refusal, TableMapping, Target
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import decode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import TrailPosition

ATTEMPTS = 4
"""How often resolving a conflict is tried if the row changes in the meantime."""

LONGEST_SHOWN = 80
MOST_SHOWN = 8
"""How many columns a message shows for a row without a key; the discard file shows all of them."""

_WORDS = {IoType.INSERT: "insert", IoType.DELETE: "delete", IoType.PURGE_DATA: "truncate"}


class IsolationScope(Enum):
    """The share of a source transaction that spans hold.

    The whole; a part of one that MAXTRANSOPS has split (the earlier part is committed); or the part of a large one that is
    kept in memory (nothing of it is committed)."""

    WHOLE = auto()
    PART = auto()
    LARGE = auto()


class _Handling(Enum):
    """What becomes of a refused operation that is not applied in any form."""

    DISCARD = auto()
    IGNORE = auto()
    SKIP = auto()
    """Skipped by collision handling."""
    REFUSE = auto()
    """The transaction is rolled back; it is tried again, skipped as a whole, or ends the process."""


def _handling(response: Response, *, skips: bool) -> _Handling:
    """Return what a rule does with a refused operation; ``skips``: collision handling skips it if the rule does not."""
    if response is Response.DISCARD:
        return _Handling.DISCARD
    if response is Response.IGNORE:
        return _Handling.IGNORE
    return _Handling.SKIP if skips else _Handling.REFUSE


class _Refused(NamedTuple):
    """An operation, the row ``row`` of a batch, with the target's refusal."""

    batch: ChangeBatch
    row: int
    mapping: TableMapping
    refusal: Refusal

    @property
    def io_type(self) -> int:
        return int(self.batch.io_type[self.row])

    @property
    def place(self) -> TrailPosition:
        return TrailPosition(self.batch.seqno, int(self.batch.rba[self.row]))

    @property
    def header(self) -> TransactionHeader:
        pieces = self.batch.pieces
        return next(piece.header for piece in pieces if piece.first <= self.row < piece.first + piece.count)

    def answered(self, *, discarded: bool = False) -> AnsweredOperation:
        """Return the operation for the statistics."""
        return AnsweredOperation(self.mapping.source.name, self.mapping.target.name, self.io_type, discarded)


def _operations(spans: Sequence[BatchSpan]) -> Iterator[tuple[BatchSpan, int, TableMapping]]:
    """Yield the rows of the spans that have a target, each with its span and its mapping."""
    for span in spans:
        for row in range(span.first, span.last):
            mapping = span.mappings.get(int(span.batch.table[row]))
            if mapping is not None:
                yield span, row, mapping


class RefusalIsolation:
    """Applies the rows of a failed transaction one by one, after the target was rolled back, whole or to a savepoint."""

    def __init__(self, target: Target, discard: DiscardFile | None, responses: Responses) -> None:
        self._target = target
        self._discard = discard
        self.responses = responses

    def find(self, spans: Sequence[BatchSpan], scope: IsolationScope) -> list[AnsweredOperation]:
        """Apply rows one by one and return the operations that were not applied as they are; nothing is committed.

        It returns if no single row is refused, or if every refusal has an answer. If there are answers, a savepoint is set
        before each row. Raises ApplyError with the operation; the transaction is then rolled back. If an answer concerns
        the whole transaction, nothing of it is applied: it is skipped here, or TransactionAbortedError starts it again.
        """
        answered: list[AnsweredOperation] = []
        answering = self.responses.active
        for span, row, mapping in _operations(spans):
            refusal = self._target.set_savepoint() if answering else None
            refusal = refusal or self._target.apply_one(span.batch, row, mapping)
            if refusal is None:
                continue
            answer = self._answer(_Refused(span.batch, row, mapping, refusal), scope)
            if isinstance(answer, Verdict):
                return self.pass_over(spans, answer)
            answered += [answer] if answer is not None else []
        return answered

    def pass_over(self, spans: Sequence[BatchSpan], verdict: Verdict) -> list[AnsweredOperation]:
        """Skip a whole transaction: with TRANSEXCEPTION write each operation to its exceptions table.

        A record that several MAP statements take is written once. Operations without an exceptions table go to the discard
        file. Raises ApplyError if an exceptions table refuses a row."""
        answered: list[AnsweredOperation] = []
        for span in spans:
            written: set[int] = set()
            for _, row, mapping in _operations([span]):
                refused = _Refused(span.batch, row, mapping, verdict.refusal)
                rba = refused.place.rba
                is_exception = verdict.response is Response.TRANSEXCEPTION
                if is_exception and rba not in written:
                    rows = self._exceptions(refused)
                    self._write_exception_rows(rows)
                    is_exception = bool(rows)
                if is_exception:
                    written.add(rba)
                else:
                    self._write_discarded(refused)
                answered.append(refused.answered(discarded=not is_exception))
        return answered

    def at_commit(self, spans: Sequence[BatchSpan], refusal: Refusal, scope: IsolationScope) -> list[AnsweredOperation]:
        """Answer a commit that was refused after all rows were accepted (a deferred constraint).

        Returns the operations that were skipped instead. Raises ApplyError, ConnectionLostError or
        TransactionAbortedError; the transaction is then rolled back.
        """
        self._target.rollback()
        batch, piece = spans[-1].batch, spans[-1].pieces[-1]
        place = TrailPosition(batch.seqno, int(batch.rba[piece.first]))
        rule = self.responses.to(refusal)
        if refusal.transient and rule.response is not Response.TRANSABORT:
            raise refusal.aborted()
        verdict = self._whole_answer(rule, piece.header, refusal, scope)
        if verdict is not None:
            return self.pass_over(spans, verdict)
        raise ApplyError(
            f"the target refuses to commit transaction {piece.header.xid} (CSN {piece.header.csn}): {refusal.text}",
            where=_where(place),
            hint="correct the rows that violate the constraint, then START REPLICAT: it continues with this transaction",
            place=place,
        )

    def aborts(self, refusal: Refusal, spans: Sequence[BatchSpan]) -> bool:
        """Whether TRANSABORT, in the parameter file or a MAP statement, decides when the transaction is tried again."""
        mappings = (mapping for span in spans for mapping in span.mappings.values())
        return any(self.responses.to(refusal, each).response is Response.TRANSABORT for each in (None, *mappings))

    def _whole_answer(
        self, rule: ErrorRule, header: TransactionHeader, refusal: Refusal, scope: IsolationScope
    ) -> Verdict | None:
        """Return a rule's answer about the whole, rolled back transaction; None if it has none or no retries are left."""
        if rule.response is Response.TRANSABORT:
            self.responses.whole.try_again(header, rule, refusal)
        if rule.response is Response.TRANSABORT or rule.response not in WHOLE or scope is IsolationScope.PART:
            return None
        verdict = Verdict(rule.response, refusal)
        if scope is IsolationScope.WHOLE:
            return verdict
        self.responses.whole.begin_again(header, verdict)
        return None

    def _answer(self, refused: _Refused, scope: IsolationScope) -> AnsweredOperation | Verdict | None:
        """Answer a refusal by the rules; return the skipped or changed operation.

        None if the row is applied after all, as it is or in another form; a verdict if the whole transaction, which is
        rolled back then, is to be skipped."""
        operation = refused.answered()
        answer, refused = self._resolve(refused)
        if answer is not None:
            operation = operation._replace(
                applied=bool(answer.operations), conflict=answer.conflict, resolved=answer.resolved
            )
            if answer.resolved:
                return operation
        discards = answer is not None and answer.discard
        if not discards:
            remaining = self._in_another_form(refused)
            if remaining is None:
                return operation._replace(applied=True) if answer is not None else None
            refused = remaining
        return self._by_rule(refused, operation, scope, discards=discards)

    def _by_rule(
        self, refused: _Refused, operation: AnsweredOperation, scope: IsolationScope, *, discards: bool
    ) -> AnsweredOperation | Verdict:
        """Answer a refusal that remains by REPERROR; ``discards``: RESOLVECONFLICT discards the operation."""
        refusal, mapping = refused.refusal, refused.mapping
        rule = self.responses.to(refusal, mapping)
        if refusal.transient and rule.response is not Response.TRANSABORT:
            self._target.rollback()
            raise refusal.aborted()
        if rule.response is Response.EXCEPTION and not discards:
            if self._write_exceptions(refused):
                return operation
            rule = self.responses.without_exceptions(mapping)
        skips = self.responses.is_left_out(operation.io_type, refusal, mapping)
        handling = _Handling.DISCARD if discards else _handling(rule.response, skips=skips)
        if handling is _Handling.REFUSE:
            return self._refuse(refused, rule, scope)
        if not self._target.rollback_to_savepoint():
            self._target.rollback()
            raise self._described(refused)
        if handling is _Handling.DISCARD:
            self._write_discarded(refused)
        return operation._replace(discarded=handling is _Handling.DISCARD, ignored=handling is _Handling.IGNORE)

    def _refuse(self, refused: _Refused, rule: ErrorRule, scope: IsolationScope) -> Verdict:
        """Roll the transaction back and return the verdict on it. Raises ApplyError if there is none."""
        self._target.rollback()
        verdict = self._whole_answer(rule, refused.header, refused.refusal, scope)
        if verdict is None:
            raise self._described(refused)
        return verdict

    def _in_another_form(self, refused: _Refused) -> _Refused | None:
        """Try to apply a row by RETRYOP or collision handling; return it with the last refusal, None if it is applied."""
        batch, row, mapping, refusal = refused
        rule = self.responses.to(refusal, mapping)
        attempts = (rule.retries or 0) if rule.response is Response.RETRYOP else 0
        others = self.responses.instead(batch, row, refusal, mapping)
        while not refusal.transient and (others or attempts) and self._target.rollback_to_savepoint():
            if others:
                again = self._one_by_one(others, without_comparisons(mapping))
                # An insert that replaces an update of a missing row may find a row with its key, and then replaces it.
                second = again is not None and refusal.missing and not again.missing
                others = self.responses.instead(batch, row, again, mapping) if again is not None and second else ()
            else:
                attempts -= 1
                again = self._target.apply_one(batch, row, mapping)
            if again is None:
                return None
            if not (refusal.state == UNIQUE and again.missing):
                refusal = again  # otherwise another row has the unique value, and the first refusal names it
        return refused._replace(refusal=refusal)

    def _resolve(self, refused: _Refused) -> tuple[Answer | None, _Refused]:
        """Resolve a refusal by RESOLVECONFLICT; return the answer and, if it is not resolved, the remaining refusal.

        The row may change between the refusal and its answer, so that the answer is refused too; the new conflict is then
        resolved in turn.
        """
        resolver = self.responses.resolver
        if resolver is None or not resolver.knows(refused.mapping):
            return None, refused
        answer: Answer | None = None
        for _ in range(ATTEMPTS):
            if refused.refusal.transient or not self._target.rollback_to_savepoint():
                break
            found = resolver.answer(*refused, self._target.fetch)
            if found is None:
                break
            answer = found
            if not answer.resolved:
                return answer, refused._replace(refusal=answer.refusal or refused.refusal)
            again = self._first_refusal(answer.operations)
            if again is None:
                return answer, refused
            refused = refused._replace(refusal=again)
        return (answer._replace(resolved=False, operations=()) if answer is not None else None), refused

    def _first_refusal(self, operations: Sequence[tuple[ChangeBatch, TableMapping]]) -> Refusal | None:
        """Apply operations until one is refused; None if all are applied."""
        for operation, mapping in operations:
            refusal = self._target.apply_one(operation, 0, mapping)
            if refusal is not None:
                return refusal
        return None

    def _write_exceptions(self, refused: _Refused) -> bool:
        """Write a refused operation to its exceptions table; False if it has none.

        Raises ApplyError if the exceptions table refuses it."""
        rows = self._exceptions(refused)
        if not rows or not self._target.rollback_to_savepoint():
            return False
        self._write_exception_rows(rows)
        return True

    def _exceptions(self, refused: _Refused) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        exceptions = self.responses.exceptions
        return exceptions.operations(*refused) if exceptions is not None else ()

    def _write_exception_rows(self, rows: Sequence[tuple[ChangeBatch, TableMapping]]) -> None:
        for row, mapping in rows:
            refusal = self._target.apply_one(row, 0, mapping)
            if refusal is not None:
                self._target.rollback()
                raise self._described(_Refused(row, 0, mapping, refusal))

    def _one_by_one(self, operations: Sequence[ChangeBatch], mapping: TableMapping) -> Refusal | None:
        for operation in operations:
            refusal = self._target.apply_one(operation, 0, mapping)
            if refusal is not None and not (refusal.missing and operation.io_type[0] == IoType.DELETE):
                return refusal
        return None

    def _described(self, refused: _Refused) -> ApplyError:
        """Write a refused operation to the discard file, and return the error that ends the process."""
        batch, row, mapping, refusal = refused
        before, after = row_values(batch, row, mapping.source)
        keys = {mapping.source.columns[index].name for index in mapping.key}
        found = [f"{name} = {_short(value)}" for name, value in before or after if name in keys]
        if len(found) > MOST_SHOWN:
            found[MOST_SHOWN:] = ["…"]
        word = operation_word(refused.io_type)
        text = f"{word} on {mapping.target.name} ({', '.join(found) or 'no key'}) failed: {refusal.text}"
        hint = (
            refusal.hint
            or "fix the target's row or the mapping, then START REPLICAT: it continues with this transaction"
        )
        if refusal.state == FOREIGN:
            hint = f"{hint}; {self._target.foreign_key_hint}"
        if self._discard is not None:
            self._write_discarded(refused)
            hint += f"; the row is in {self._discard.path}"
        code = refusal.code or ("OGG-01403" if refusal.missing else "OGG-01296")
        return ApplyError(text, code=code, where=_where(refused.place), hint=hint, place=refused.place)

    def _write_discarded(self, refused: _Refused) -> None:
        """Write a refused operation to the discard file, if there is one."""
        if self._discard is None:
            return
        batch, row, mapping, refusal = refused
        before, after = row_values(batch, row, mapping.source)
        word = operation_word(refused.io_type)
        self._discard.write(
            Discarded(mapping.source.name, mapping.target.name, word, refused.place, before, after, refusal.text)
        )


def _where(place: TrailPosition) -> str:
    return f"trail file {place.seqno}, RBA {place.rba}"


def _short(value: str) -> str:
    return value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}… ({len(value)} characters)"


def operation_word(io_type: int) -> str:
    """Return one word for an operation type."""
    return _WORDS.get(IoType(io_type), "update")


def row_values(
    batch: ChangeBatch, row: int, source: TableDefinition
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the known columns before the change and the columns after it (for a delete: its row), by name and as text."""
    before, after = batch.images(row)
    names = [column.name for column in source.columns]
    return _named(before, names), _named(after, names)


def _named(image: bytes, names: list[str]) -> list[tuple[str, str]]:
    return [
        (names[index], "NULL" if value is None else value.decode(errors="replace"))
        for index, value in decode_image(image)
    ]
