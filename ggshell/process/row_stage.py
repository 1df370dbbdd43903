"""The stage that works on rows between a trail and its delivery: nothing at all where no MAP asks for anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ggshell.apply.conflicts import Resolver
from ggshell.apply.discard import DiscardFile
from ggshell.apply.error_rules import ErrorRule, ErrorRules, Response
from ggshell.apply.exceptions import RaisedErrors, RefusedRows
from ggshell.apply.mapping import Mapper, MapRule
from ggshell.apply.responses import Responses
from ggshell.apply.row_mapping import RowMapping
from ggshell.columns.environment import Environment
from ggshell.columns.stage import Stage
from ggshell.params.files import MapStatement
from ggshell.params.reperror import ReperrorRule
from ggshell.record.change import ChangeBatch

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
