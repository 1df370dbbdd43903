"""Find the operation that a target refuses, by applying rows one at a time, and answer or report the refusal."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from ggshell.errors import ApplyError, ConnectionLostError
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


class RefusalIsolation:
    """Applies the rows of a failed transaction one by one, after the target was rolled back, whole or to a savepoint."""

    def __init__(self, target: Target, discard: DiscardFile | None, responses: Responses) -> None:
        self._target = target
        self._discard = discard
        self.responses = responses
        self._scope = IsolationScope.PART
        self._verdict: Verdict | None = None

    def find(self, spans: Sequence[BatchSpan], scope: IsolationScope) -> list[AnsweredOperation]:
        """Apply rows one by one and return the operations that were not applied as they are; nothing is committed.

        It returns if no single row is refused, or if every refusal has an answer. If there are answers, a savepoint is set
        before each row. Raises ApplyError with the operation; the transaction is then rolled back. If an answer concerns
        the whole transaction, nothing of it is applied: it is skipped here, or TransactionAbortedError starts it again.
        """
        self._scope = scope
        self._verdict = None
        answered: list[AnsweredOperation] = []
        answering = self.responses.active
        for span in spans:
            for row in range(span.first, span.last):
                mapping = span.mappings.get(int(span.batch.table[row]))
                if mapping is None:
                    continue
                refusal = self._target.set_savepoint() if answering else None
                refusal = refusal or self._target.apply_one(span.batch, row, mapping)
                if refusal is not None:
                    passed = self._answer(span.batch, row, mapping, refusal)
                    answered += [passed] if passed is not None else []
                    if self._verdict is not None:
                        return self.pass_over(spans, self._verdict)
        return answered

    def pass_over(self, spans: Sequence[BatchSpan], verdict: Verdict) -> list[AnsweredOperation]:
        """Skip a whole transaction: with TRANSEXCEPTION write each operation to its exceptions table.

        A record that several MAP statements take is written once. Operations without an exceptions table go to the discard
        file. Raises ApplyError if an exceptions table refuses a row."""
        answered: list[AnsweredOperation] = []
        told: set[int] = set()
        for span in spans:
            batch = span.batch
            for row in range(span.first, span.last):
                mapping = span.mappings.get(int(batch.table[row]))
                if mapping is None:
                    continue
                tells = verdict.response is Response.TRANSEXCEPTION
                if tells and int(batch.rba[row]) not in told:
                    others = self._exceptions(batch, row, mapping, verdict.refusal)
                    self._tell(others)
                    tells = bool(others)
                if tells:
                    told.add(int(batch.rba[row]))
                elif self._discard is not None:
                    self._discard.write(self._discarded(batch, row, mapping, verdict.refusal))
                answered.append(
                    AnsweredOperation(mapping.source.name, mapping.target.name, int(batch.io_type[row]), not tells)
                )
            told.clear()
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
            raise ConnectionLostError(f"the target aborted a transaction: {refusal.text}")
        verdict = self._whole_answer(rule, piece.header, refusal, scope)
        if verdict is not None:
            return self.pass_over(spans, verdict)
        raise ApplyError(
            f"the target refuses to commit transaction {piece.header.xid} (CSN {piece.header.csn}): {refusal.text}",
            where=_where(place),
            hint="fix what the target's constraint names, then START REPLICAT: it continues with this transaction",
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

    def _answer(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> AnsweredOperation | None:
        """Answer a refusal by the rules and return the skipped or changed operation.

        None if the row is applied after all, as it is or in another form, or if the whole transaction is to be skipped."""
        io_type = int(batch.io_type[row])
        operation = AnsweredOperation(mapping.source.name, mapping.target.name, io_type, False)
        answer, refusal = self._resolve(batch, row, mapping, refusal)
        if answer is not None:
            operation = operation._replace(
                applied=bool(answer.operations), conflict=answer.conflict, resolved=answer.resolved
            )
            if answer.resolved:
                return operation
        discards = answer is not None and answer.discard
        if not discards:
            found = self._in_another_form(batch, row, mapping, refusal)
            if found is None:
                return operation._replace(applied=True) if answer is not None else None
            refusal = found
        rule = self.responses.to(refusal, mapping)
        if refusal.transient and rule.response is not Response.TRANSABORT:
            self._target.rollback()
            raise ConnectionLostError(f"the target aborted a transaction: {refusal.text}")
        if rule.response is Response.EXCEPTION and not discards:
            if self._told(batch, row, mapping, refusal):
                return operation
            rule = self.responses.without_exceptions(mapping)
        discards = discards or rule.response is Response.DISCARD
        ignores = not discards and rule.response is Response.IGNORE
        passes = discards or ignores or self.responses.is_left_out(io_type, refusal, mapping.target.name)
        if not passes or not self._target.rollback_to_savepoint():
            self._target.rollback()
            if not passes:
                piece = next(piece for piece in batch.pieces if piece.first <= row < piece.first + piece.count)
                self._verdict = self._whole_answer(rule, piece.header, refusal, self._scope)
                if self._verdict is not None:
                    return None
            raise self._described(batch, row, mapping, refusal)
        if discards and self._discard is not None:
            self._discard.write(self._discarded(batch, row, mapping, refusal))
        return operation._replace(discarded=discards, ignored=ignores)

    def _in_another_form(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> Refusal | None:
        """Try to apply a refused row by RETRYOP or collision handling; return the last refusal, None if it is applied."""
        rule = self.responses.to(refusal, mapping)
        attempts = (rule.retries or 0) if rule.response is Response.RETRYOP else 0
        others = self.responses.instead(batch, row, refusal, mapping.target.name)
        while not refusal.transient and (others or attempts) and self._target.rollback_to_savepoint():
            if others:
                again = self._one_by_one(others, without_comparisons(mapping))
                # An insert that replaces an update of a missing row may find a row with its key, and then replaces it.
                second = again is not None and refusal.missing and not again.missing
                others = (
                    self.responses.instead(batch, row, again, mapping.target.name)
                    if again is not None and second
                    else ()
                )
            else:
                attempts -= 1
                again = self._target.apply_one(batch, row, mapping)
            if again is None:
                return None
            if not (refusal.state == UNIQUE and again.missing):
                refusal = again  # otherwise another row has the unique value, and the first refusal names it
        return refusal

    def _resolve(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> tuple[Answer | None, Refusal]:
        """Resolve a refusal by RESOLVECONFLICT; return the answer and, if it is not resolved, the remaining refusal.

        The row may change between the refusal and its answer, so that the answer is refused too; the new conflict is then
        resolved in turn.
        """
        resolver = self.responses.resolver
        if resolver is None or not resolver.knows(mapping):
            return None, refusal
        answer: Answer | None = None
        for _ in range(ATTEMPTS):
            if refusal.transient or not self._target.rollback_to_savepoint():
                break
            found = resolver.answer(batch, row, mapping, refusal, self._target.fetch)
            if found is None:
                break
            answer = found
            if not answer.resolved:
                return answer, answer.refusal or refusal
            operations = ((data, its) for data, its in answer.operations)
            again = next((said for data, its in operations if (said := self._target.apply_one(data, 0, its))), None)
            if again is None:
                return answer, refusal
            refusal = again
        return (answer._replace(resolved=False, operations=()) if answer is not None else None), refusal

    def _told(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> bool:
        """Write a refused operation to its exceptions table; False if it has none.

        Raises ApplyError if the exceptions table refuses it."""
        others = self._exceptions(batch, row, mapping, refusal)
        if not others or not self._target.rollback_to_savepoint():
            return False
        self._tell(others)
        return True

    def _exceptions(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        exceptions = self.responses.exceptions
        return exceptions.operations(batch, row, mapping, refusal) if exceptions is not None else ()

    def _tell(self, others: Sequence[tuple[ChangeBatch, TableMapping]]) -> None:
        for operation, its_mapping in others:
            again = self._target.apply_one(operation, 0, its_mapping)
            if again is not None:
                self._target.rollback()
                raise self._described(operation, 0, its_mapping, again)

    def _one_by_one(self, operations: Sequence[ChangeBatch], mapping: TableMapping) -> Refusal | None:
        for operation in operations:
            refusal = self._target.apply_one(operation, 0, mapping)
            if refusal is not None and not (refusal.missing and operation.io_type[0] == IoType.DELETE):
                return refusal
        return None

    def _described(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> ApplyError:
        io_type = IoType(int(batch.io_type[row]))
        place = TrailPosition(batch.seqno, int(batch.rba[row]))
        before, after = row_values(batch, row, mapping.source)
        target = mapping.target.name
        word = operation_word(io_type)
        keys = {mapping.source.columns[index].name for index in mapping.key}
        found = [f"{name} = {_short(value)}" for name, value in before or after if name in keys]
        if len(found) > MOST_SHOWN:
            found[MOST_SHOWN:] = ["…"]
        text = f"{word} on {target} ({', '.join(found) or 'no key'}) failed: {refusal.text}"
        hint = (
            refusal.hint
            or "fix the target's row or the mapping, then START REPLICAT: it continues with this transaction"
        )
        if refusal.state == FOREIGN:
            hint = f"{hint}; {self._target.foreign_key_hint}"
        if self._discard is not None:
            self._discard.write(self._discarded(batch, row, mapping, refusal))
            hint += f"; the row is in {self._discard.path}"
        code = refusal.code or ("OGG-01403" if refusal.missing else "OGG-01296")
        return ApplyError(text, code=code, where=_where(place), hint=hint, place=place)

    def _discarded(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> Discarded:
        before, after = row_values(batch, row, mapping.source)
        return Discarded(
            mapping.source.name,
            mapping.target.name,
            operation_word(int(batch.io_type[row])),
            TrailPosition(batch.seqno, int(batch.rba[row])),
            before,
            after,
            refusal.text,
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
