"""Executes the DDL statements of a delivery: which of them, under which names, and what follows a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.ddl_choices import DdlChoices
from ggshell.pipeline.apply.ddl_parts import statement_of
from ggshell.pipeline.apply.discard import Discarded, DiscardFile
from ggshell.pipeline.apply.error_rules import DEFAULT, ErrorRule, Response
from ggshell.pipeline.apply.groups import AnsweredOperation, BatchSpan
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.object_names import ObjectNames
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import DDL_REPORT, Refusal, Target
from ggshell.record.ddl import DdlStatement
from ggshell.record.ddl_responses import DdlResponse
from ggshell.record.ddl_rules import DdlScope, scope_of
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

LONGEST_TEXT: Final = 200
"""How many characters of a statement a message shows."""


class DdlDelivery:
    """Executes one statement at a time, in its transaction or outside of any."""

    def __init__(
        self,
        target: Target,
        mapper: Mapper,
        discard: DiscardFile | None,
        responses: Responses,
        choices: DdlChoices,
    ) -> None:
        self._target = target
        self._mapper = mapper
        self._discard = discard
        self._whole = responses.whole
        self._choices = choices
        self._names = ObjectNames(mapper, choices.names)
        self._noted = choices.noted

    def outside(self, span: BatchSpan) -> bool:
        """Whether a statement is alone in its transaction and must be executed outside of any."""
        piece = span.pieces[0]
        return piece.begins and piece.ends and self._target.runs_outside(statement_of(span.batch))

    def execute(self, span: BatchSpan) -> AnsweredOperation | None:
        """Execute a statement in the open transaction; None if the parameter DDL leaves it out.

        A refused statement is rolled back alone if DDLERROR ignores or discards it. Afterwards, target tables are looked up
        again. Raises ApplyError, ConnectionLostError and TransactionAbortedError; the whole transaction is then rolled back.
        """
        return self._execute(span, self._in_transaction)

    def execute_outside(self, span: BatchSpan, *, again: bool) -> AnsweredOperation | None:
        """Execute a statement outside of any transaction; ``again``: an earlier run may have executed it already."""
        return self._execute(
            span,
            lambda statement: self._target.execute_outside(statement, self._names, self._noted, again=again),
        )

    def pass_over(self, span: BatchSpan, refusal: Refusal) -> AnsweredOperation:
        """Write a statement to the discard file, because its whole transaction is skipped."""
        return self._passed(span, statement_of(span.batch), refusal, DdlResponse.DISCARD)

    def _execute(self, span: BatchSpan, run: Callable[[DdlStatement], Refusal | None]) -> AnsweredOperation | None:
        recorded = statement_of(span.batch)
        scope, target = self._scope(recorded)
        if not self._choices.rules.takes(recorded, scope, target):
            self._report(recorded, scope, "is excluded")
            return None
        statement = self._choices.substitutions.of(recorded, scope, target)
        refusal = run(statement)
        self._mapper.forget()
        if refusal is not None:
            return self._refused(span, statement, refusal)
        self._report(statement, scope, "is executed")
        self._compare(statement)
        return AnsweredOperation(recorded.main.name, self._name(recorded), int(IoType.DDL), False, applied=True)

    def _scope(self, statement: DdlStatement) -> tuple[DdlScope, TableName | None]:
        """Return what MAP says about a statement's object: its scope, and its target name if it is MAPPED."""
        scope = scope_of(statement, self._names.maps)
        return scope, self._name(statement) if scope is DdlScope.MAPPED else None

    def _in_transaction(self, statement: DdlStatement) -> Refusal | None:
        """Execute a statement after a savepoint; a refusal is rolled back to it."""
        refusal = self._target.execute_ddl(statement, self._names, self._noted)
        if refusal is not None and not refusal.transient and not self._target.rollback_to_savepoint():
            raise refusal.aborted()
        return refusal

    def _refused(self, span: BatchSpan, statement: DdlStatement, refusal: Refusal) -> AnsweredOperation:
        """Answer a refusal by DDLERROR."""
        if refusal.transient:
            self._target.rollback()
            raise refusal.aborted()
        answer = self._choices.errors.answer(refusal.state, statement, *self._scope(statement))
        header = span.pieces[0].header
        if self._whole.tries(header) < answer.retries:
            self._target.rollback()
            self._whole.try_again(
                header, ErrorRule(DEFAULT, Response.TRANSABORT, answer.retries, answer.delay), refusal
            )
        if answer.response is DdlResponse.ABEND:
            self._target.rollback()
            raise self._described(span, statement, refusal)
        return self._passed(span, statement, refusal, answer.response)

    def _passed(
        self, span: BatchSpan, statement: DdlStatement, refusal: Refusal, response: DdlResponse
    ) -> AnsweredOperation:
        discards = response is DdlResponse.DISCARD
        if discards and self._discard is not None:
            self._discard.write(
                Discarded(
                    statement.main.name,
                    self._name(statement),
                    "DDL",
                    _place(span),
                    [],
                    [("DDL", statement.text)],
                    refusal.text,
                )
            )
        return AnsweredOperation(
            statement.main.name, self._name(statement), int(IoType.DDL), discards, ignored=not discards
        )

    def _described(self, span: BatchSpan, statement: DdlStatement, refusal: Refusal) -> ApplyError:
        place = _place(span)
        name = statement.main.name
        of = f" of {name}" if name.name else ""
        return ApplyError(
            f"the target refuses {statement.tag}{of}: {refusal.text}; statement: {_short(statement.text)}",
            code=refusal.code or "OGG-00519",
            where=f"trail file {place.seqno}, RBA {place.rba}",
            hint=refusal.hint
            or "change the target so that the statement succeeds, then START REPLICAT: it continues with this transaction;"
            " or exclude the statement with DDL, or set DDLERROR",
            place=place,
        )

    def _name(self, statement: DdlStatement) -> TableName:
        """Return the name of a statement's object in the target."""
        return self._names.table(statement.main.name)

    def _report(self, statement: DdlStatement, scope: DdlScope, what: str) -> None:
        """Report a statement, with DDLOPTIONS REPORT."""
        if self._choices.reports:
            self._noted(DDL_REPORT, f"{statement.tag}, scope {scope}, {what}: {_short(statement.text)}")

    def _compare(self, statement: DdlStatement) -> None:
        """Report columns of the statement's table that differ in the target."""
        if not statement.columns:
            return
        own = self._names.plain_target(statement.main.name)
        table = self._target.describe(own) if own is not None else None
        if own is None:
            return
        there = {column.name for column in table.columns} if table is not None else set()
        here = {column.name for column in statement.columns}
        texts = [f"without {', '.join(sorted(here - there))}"] if here - there else []
        texts += [f"with {', '.join(sorted(there - here))}"] if there - here else []
        if texts:
            self._choices.warned(
                "GGS-00577",
                f"After {statement.tag}, target table {own} differs from source table {statement.main.name}: it is"
                f" {' and '.join(texts)}.",
            )


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST_TEXT else f"{plain[:LONGEST_TEXT]}…"


def _place(span: BatchSpan) -> TrailPosition:
    return TrailPosition(span.batch.seqno, int(span.batch.rba[0]))
