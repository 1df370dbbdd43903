"""The stage that works on rows, as each process has it: nothing at all where no MAP or TABLE asks for anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ggshell.apply.conflicts import Resolver
from ggshell.apply.discard import DiscardFile
from ggshell.apply.error_rules import ErrorRule, ErrorRules, Response
from ggshell.apply.exceptions import RaisedErrors, RefusedRows
from ggshell.apply.mapping import Mapper, MapRule, target_name
from ggshell.apply.responses import Responses
from ggshell.apply.row_mapping import RowMapping
from ggshell.columns.environment import Environment
from ggshell.columns.projection import projected
from ggshell.columns.stage import Programs, Stage
from ggshell.columns.tokens import Tokens, TokenStage, compile_tokens
from ggshell.errors import StatementError
from ggshell.params.files import MapStatement, TableStatement
from ggshell.params.reperror import ReperrorRule
from ggshell.process.tables import matches
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import NO_OPERATIONS
from ggshell.types import TableName

Wanted = Callable[[TableName], bool]
Ignored = Callable[[TableName], frozenset[int]]
Count = Callable[[str, str], int | None]
Work = Callable[[ChangeBatch], ChangeBatch]


def map_rules(maps: tuple[MapStatement, ...]) -> list[MapRule]:
    """The rules of a file's MAP lines."""
    return [
        MapRule(each.source, each.target, each.keycols, each.ignored, each.clauses, _refusals(each)) for each in maps
    ]


def error_rules(rules: Sequence[ReperrorRule]) -> list[ErrorRule]:
    """REPERROR as a file has it."""
    return [ErrorRule(rule.error, Response(rule.response), rule.retries, rule.delay) for rule in rules]


def _refusals(statement: MapStatement) -> ErrorRules | None:
    return ErrorRules(error_rules(statement.refusals)) if statement.refusals else None


def replicat_stage(
    maps: tuple[MapStatement, ...],
    mapper: Mapper,
    flush: Callable[[], None],
    environment: Environment,
    responses: Responses,
    discard: DiscardFile | None = None,
) -> Work:
    """What stands between trail and delivery; ``environment``: what @GETENV tells; ``flush``
    applies what is on its way."""
    sources = [each.source.lower() for each in maps]
    acts = any(each.clauses.active or each.clauses.exception_target for each in maps)
    if not acts and len(set(sources)) == len(sources):
        return lambda batch: batch
    environment.database()  # asked now, while nothing is on its way
    if environment.queries is not None:
        environment.queries.settle = flush
    resolver = Resolver()
    rows = RowMapping(map_rules(maps), mapper, environment, flush, resolver)
    environment.count = _with_conflicts(environment.count, resolver)
    responses.resolver = resolver
    responses.exceptions = RefusedRows(rows, environment)
    return Stage(rows.programs, RaisedErrors(rows, environment, responses, discard)).run


def _with_conflicts(count: Count, resolver: Resolver) -> Count:
    """The process's counts, and those of conflicts, which are not kept by table."""

    def counted(table: str, statistic: str) -> int | None:
        counts = resolver.counts
        found = {
            "CDR_CONFLICTS": counts.found,
            "CDR_RESOLUTIONS_SUCCEEDED": counts.resolved,
            "CDR_RESOLUTIONS_FAILED": counts.failed,
        }
        return found[statistic] if statistic in found else count(table, statistic)

    return counted


class TableStage:
    """What stands between capture, or a trail, and the trails that are written: the clauses of TABLE lines.

    The first line that takes a table counts.
    """

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
        """What is wanted and left out behind the stage, given what is before it."""
        if not self._active:
            return wanted, ignored
        self._wanted = wanted
        return (
            lambda name: name in self._made or wanted(name),
            lambda name: NO_OPERATIONS if name in self._made else ignored(name),
        )

    def work(self, batch: ChangeBatch) -> ChangeBatch:
        """Raises StatementError for what cannot be meant, ParameterError for tokens that are too long."""
        if self._tokens is not None:
            batch = self._tokens.stamp(batch)
        return self._stage.run(batch) if self._active else batch

    def _programs(self, source: TableDefinition) -> Programs:
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
        if found is None:
            return None
        with _placed(found):
            return compile_tokens(source, found.clauses, self._environment)

    def _statement(self, source: TableDefinition) -> TableStatement | None:
        return next((each for each in self._tables if matches(each.pattern, source.name)), None)


@contextmanager
def _placed(statement: TableStatement) -> Iterator[None]:
    """An error within says which line it is of."""
    try:
        yield
    except StatementError as error:
        error.where = error.where or statement.clauses.place
        raise


UNTOUCHED = TableStage((), Environment())
"""For a path, whose rows go as they come."""
