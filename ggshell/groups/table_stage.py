"""The stage that processes rows between capture, or a source trail, and the trails that are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ggshell.errors import StatementError
from ggshell.parameters.process_parameters import TableStatement
from ggshell.pipeline.apply.mapping import target_name
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.projection import projected
from ggshell.pipeline.transform.stage import Programs, Stage
from ggshell.pipeline.transform.tokens import Tokens, TokenStage, compile_tokens
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.name_patterns import matches
from ggshell.record.operation import NO_OPERATIONS
from ggshell.record.sequences import is_sequence
from ggshell.types import TableName

Wanted = Callable[[TableName], bool]
Ignored = Callable[[TableName], frozenset[int]]


class TableStage:
    """Applies the clauses of TABLE lines; for each table, the first line that selects it applies."""

    def __init__(self, tables: Sequence[TableStatement], environment: Environment) -> None:
        self._tables = tables
        self._environment = environment
        self._active = any(each.clauses.active or each.target for each in tables)
        self._wanted: Wanted = lambda _: True
        self._made: set[TableName] = set()
        self._stage = Stage(self._programs)
        stamps = any(each.clauses.tokens is not None for each in tables)
        self._tokens = TokenStage(self._tokens_of) if stamps else None

    def around(self, wanted: Wanted, ignored: Ignored) -> tuple[Wanted, Ignored]:
        """Return the filters to use after the stage, given the filters to use before it."""
        if not self._active:
            return wanted, ignored
        self._wanted = wanted
        return (
            lambda name: name in self._made or wanted(name),
            lambda name: NO_OPERATIONS if name in self._made else ignored(name),
        )

    @property
    def changes_nothing(self) -> bool:
        """Whether no row of any table is changed."""
        return not self._active and self._tokens is None

    def work(self, batch: ChangeBatch) -> ChangeBatch:
        """Process a batch. Raises StatementError for a clause that is not valid, ParameterError for tokens too long."""
        if self._tokens is not None:
            batch = self._tokens.stamp(batch)
        return self._stage.run(batch) if self._active else batch

    def _programs(self, source: TableDefinition) -> Programs:
        if is_sequence(source):
            return None
        if not self._wanted(source.name):
            return ()
        found = self._statement(source)
        if found is None or not (found.clauses.active or found.target):
            return None
        name = target_name(found.target, source.name) if found.target else source.name
        with _placed(found):
            program = projected(source, name, found.clauses, self._environment, found.ignored)
        self._made.add(name)
        return (program,)

    def _tokens_of(self, source: TableDefinition) -> Tokens | None:
        found = self._statement(source)
        if found is None or not source.columns:  # the object of a DDL record
            return None
        with _placed(found):
            return compile_tokens(source, found.clauses, self._environment)

    def _statement(self, source: TableDefinition) -> TableStatement | None:
        return next((each for each in self._tables if matches(each.pattern, source.name)), None)


@contextmanager
def _placed(statement: TableStatement) -> Iterator[None]:
    """Add the parameter file's line to an error that is raised in the block."""
    try:
        yield
    except StatementError as error:
        error.where = error.where or statement.clauses.place
        raise


UNTOUCHED = TableStage((), Environment())
"""The stage of a path, which does not change rows."""
