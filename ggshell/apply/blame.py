"""Which operation a target refuses: rows are applied one at a time until it says no, and that row is named."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from ggshell.apply.conflicts import Answer
from ggshell.apply.discard import Discarded, DiscardFile
from ggshell.apply.error_rules import WHOLE, ErrorRule, Response
from ggshell.apply.groups import Left, Span
from ggshell.apply.responses import Responses
from ggshell.apply.target import Refusal, TableMapping, Target
from ggshell.apply.whole_answers import Verdict
from ggshell.errors import ApplyError, ConnectionLostError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import decode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import TrailPosition

LONGEST_SHOWN = 80
MOST_SHOWN = 8
"""How many columns of a row without a key a message names; the discard file has them all."""

_WORDS = {IoType.INSERT: "insert", IoType.DELETE: "delete", IoType.PURGE_DATA: "truncate"}


class Scope(Enum):
    """What spans are of their source transaction: the whole, a part of one that MAXTRANSOPS has split (the rest is committed),
    or what is kept of a large one (nothing of it is committed)."""

    WHOLE = auto()
    PART = auto()
    LARGE = auto()


class Blame:
    """Applies the rows of a failed transaction one by one, in an open and otherwise empty place of the target."""

    def __init__(self, target: Target, discard: DiscardFile | None, responses: Responses) -> None:
        self._target = target
        self._discard = discard
        self.responses = responses
        self._scope = Scope.PART
        self._verdict: Verdict | None = None

    def find(self, spans: Sequence[Span], scope: Scope) -> list[Left]:
        """Apply one by one; returns when no row is refused alone, or every refusal has an answer (the rows are applied then,
        not committed): the operations that were passed over.

        With answers to give, each row has a mark of its own before it.  Raises ApplyError naming the operation; nothing of
        the transaction stays then.  Where the answer is about the whole transaction, nothing of it is applied: it is passed
        over here, or TransactionAbortedError has it begun anew.
        """
        self._scope = scope
        self._verdict = None
        left: list[Left] = []
        answering = self.responses.active
        for span in spans:
            for row in range(span.first, span.last):
                mapping = span.mappings.get(int(span.batch.table[row]))
                if mapping is None:
                    continue
                refusal = self._target.mark() if answering else None
                refusal = refusal or self._target.apply_one(span.batch, row, mapping)
                if refusal is not None:
                    passed = self._answer(span.batch, row, mapping, refusal)
                    left += [passed] if passed is not None else []
                    if self._verdict is not None:
                        return self.pass_over(spans, self._verdict)
        return left

    def pass_over(self, spans: Sequence[Span], verdict: Verdict) -> list[Left]:
        """Apply nothing of a transaction: each operation goes to its exceptions table (TRANSEXCEPTION; a record that several
        MAPs take is told once), and to the discard file where it has none.  Raises ApplyError when a table refuses that."""
        left: list[Left] = []
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
                left.append(Left(mapping.source.name, mapping.target.name, int(batch.io_type[row]), not tells))
            told.clear()
        return left

    def at_commit(self, spans: Sequence[Span], refusal: Refusal, scope: Scope) -> list[Left]:
        """The rows went in, the commit did not (a deferred constraint): what was passed over instead.

        Raises ApplyError, ConnectionLostError, or TransactionAbortedError; nothing of the transaction stays then.
        """
        self._target.rollback()
        batch, piece = spans[-1].batch, spans[-1].pieces[-1]
        place = TrailPosition(batch.seqno, int(batch.rba[piece.first]))
        rule = self.responses.to(refusal)
        if refusal.transient and rule.response is not Response.TRANSABORT:
            raise ConnectionLostError(f"the target broke a transaction off: {refusal.text}")
        verdict = self._whole_answer(rule, piece.header, refusal, scope)
        if verdict is not None:
            return self.pass_over(spans, verdict)
        raise ApplyError(
            f"the target refuses to commit transaction {piece.header.xid} (CSN {piece.header.csn}): {refusal.text}",
            where=_where(place),
            hint="mend what the target's constraint names, then START REPLICAT: it goes on with this transaction",
            place=place,
        )

    def aborts(self, refusal: Refusal, spans: Sequence[Span]) -> bool:
        """Whether the file, or a MAP, has a say in when the transaction is tried again."""
        mappings = (mapping for span in spans for mapping in span.mappings.values())
        return any(self.responses.to(refusal, each).response is Response.TRANSABORT for each in (None, *mappings))

    def _whole_answer(
        self, rule: ErrorRule, header: TransactionHeader, refusal: Refusal, scope: Scope
    ) -> Verdict | None:
        """What a rule says of the whole transaction, which is rolled back; None when it says nothing, or no longer."""
        if rule.response is Response.TRANSABORT:
            self.responses.whole.try_again(header, rule, refusal)
        if rule.response is Response.TRANSABORT or rule.response not in WHOLE or scope is Scope.PART:
            return None
        verdict = Verdict(rule.response, refusal)
        if scope is Scope.WHOLE:
            return verdict
        self.responses.whole.begin_anew(header, verdict)
        return None

    def _answer(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> Left | None:
        """What the rules say to a refusal; None when the row is applied after all, in its own form or another, or the whole
        transaction is to be passed over."""
        io_type = int(batch.io_type[row])
        answer = self._resolved(batch, row, mapping, refusal)
        if answer is not None and not answer.discard:
            again = next(
                (found for data, its in answer.operations if (found := self._target.apply_one(data, 0, its))), None
            )
            if again is None:
                left = Left(mapping.source.name, mapping.target.name, io_type, False)
                return None if answer.operations else left
            refusal = again
        found = self._in_another_form(batch, row, mapping, refusal)
        if found is None:
            return None
        refusal, rule = found, self.responses.to(found, mapping)
        if refusal.transient and rule.response is not Response.TRANSABORT:
            self._target.rollback()
            raise ConnectionLostError(f"the target broke a transaction off: {refusal.text}")
        if rule.response is Response.EXCEPTION:
            if self._told(batch, row, mapping, refusal):
                return Left(mapping.source.name, mapping.target.name, io_type, False)
            rule = self.responses.without_exceptions(mapping)
        discards = rule.response is Response.DISCARD or (answer is not None and answer.discard)
        passes = discards or rule.response is Response.IGNORE or self.responses.is_left_out(io_type, refusal)
        if not passes or not self._target.back_to_mark():
            self._target.rollback()
            if not passes:
                piece = next(piece for piece in batch.pieces if piece.first <= row < piece.first + piece.count)
                self._verdict = self._whole_answer(rule, piece.header, refusal, self._scope)
                if self._verdict is not None:
                    return None
            raise self._described(batch, row, mapping, refusal)
        if discards and self._discard is not None:
            self._discard.write(self._discarded(batch, row, mapping, refusal))
        return Left(mapping.source.name, mapping.target.name, io_type, discards)

    def _in_another_form(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> Refusal | None:
        """Apply a refused row after all, as RETRYOP and what handles collisions say; the last refusal, None where it is in."""
        rule = self.responses.to(refusal, mapping)
        attempts = (rule.retries or 0) if rule.response is Response.RETRYOP else 0
        others = self.responses.instead(batch, row, refusal)
        while not refusal.transient and (others or attempts) and self._target.back_to_mark():
            if others:
                again = self._one_by_one(others, mapping)
                # An insert in place of a missing row may meet a row of its own key, and then takes its place.
                second = again is not None and refusal.missing and not again.missing
                others = self.responses.instead(batch, row, again) if again is not None and second else ()
            else:
                attempts -= 1
                again = self._target.apply_one(batch, row, mapping)
            if again is None:
                return None
            refusal = again
        return refusal

    def _resolved(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> Answer | None:
        """What RESOLVECONFLICT says to a refusal, None where it has nothing to say; asked at the mark before the row."""
        resolver = self.responses.resolver
        if resolver is None or refusal.transient or not resolver.knows(mapping) or not self._target.back_to_mark():
            return None
        return resolver.answer(batch, row, mapping, refusal, self._target.fetch)

    def _told(self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal) -> bool:
        """Give a refused operation to its exceptions table; False when it has none.  Raises ApplyError when that refuses it."""
        others = self._exceptions(batch, row, mapping, refusal)
        if not others or not self._target.back_to_mark():
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
        hint = "mend the target's row or the mapping, then START REPLICAT: it goes on with this transaction"
        if self._discard is not None:
            self._discard.write(self._discarded(batch, row, mapping, refusal))
            hint += f"; the row is in {self._discard.path}"
        code = "OGG-01403" if refusal.missing else "OGG-01296"
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
    """What an operation does, in one word."""
    return _WORDS.get(IoType(io_type), "update")


def row_values(
    batch: ChangeBatch, row: int, source: TableDefinition
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The columns by name, as text: those before the change that are known, and those after it (of a delete: its row)."""
    before, after = batch.images(row)
    names = [column.name for column in source.columns]
    return _named(before, names), _named(after, names)


def _named(image: bytes, names: list[str]) -> list[tuple[str, str]]:
    return [
        (names[index], "NULL" if value is None else value.decode(errors="replace"))
        for index, value in decode_image(image)
    ]
