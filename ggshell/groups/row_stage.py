"""The stage that processes rows between a trail and its delivery.  It does nothing if no MAP statement requires it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ggshell.parameters.process_parameters import MapStatement
from ggshell.parameters.reperror import ReperrorRule
from ggshell.pipeline.apply.conflicts import Resolver
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, ErrorRules, Response
from ggshell.pipeline.apply.exceptions import RaisedErrors, RefusedRows
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.row_mapping import RowMapping
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage
from ggshell.record.change import ChangeBatch

Count = Callable[[str, str], int | None]
Work = Callable[[ChangeBatch], ChangeBatch]


def map_rules(maps: tuple[MapStatement, ...]) -> list[MapRule]:
    """Convert the MAP lines of a file to rules."""
    return [
        MapRule(each.source, each.target, each.keycols, each.ignored, each.clauses, _refusals(each)) for each in maps
    ]


def error_rules(rules: Sequence[ReperrorRule]) -> list[ErrorRule]:
    """Convert the REPERROR rules of a file."""
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
    """Return the function that processes batches between trail and delivery.

    ``environment``: the values of @GETENV.  ``flush``: applies the rows that are waiting in the delivery.
    """
    sources = [each.source.lower() for each in maps]
    acts = any(each.clauses.active or each.clauses.exception_target for each in maps)
    if not acts and len(set(sources)) == len(sources):
        return lambda batch: batch
    environment.database()  # queried now, while no transaction is in progress
    if environment.queries is not None:
        environment.queries.settle = flush
    resolver = Resolver()
    rows = RowMapping(map_rules(maps), mapper, environment, flush, resolver)
    environment.count = _with_conflicts(environment.count, resolver)
    responses.resolver = resolver
    responses.exceptions = RefusedRows(rows, environment)
    return Stage(rows.programs, RaisedErrors(rows, environment, responses, discard)).run


def _with_conflicts(count: Count, resolver: Resolver) -> Count:
    """Add the counts of conflicts to the counts of the process."""

    def counted(table: str, statistic: str) -> int | None:
        return resolver.counts.of(table, statistic) if statistic.startswith("CDR_") else count(table, statistic)

    return counted
