"""The stage that processes rows between a trail and its delivery, and reports the TRUNCATEs that are not applied.

The stage does nothing if no MAP statement requires it.
"""

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
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import TRUNCATES

Count = Callable[[str, str], int | None]


def map_rules(maps: tuple[MapStatement, ...]) -> list[MapRule]:
    """Convert the MAP lines of a file to rules."""
    return [
        MapRule(each.source, each.target, each.keycols, each.ignored, each.clauses, _refusals(each), each.switches)
        for each in maps
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
) -> Stage | None:
    """Return the stage between trail and delivery; None if no MAP statement requires one.

    ``environment``: the values of @GETENV. ``flush``: applies the rows that are waiting in the delivery.
    """
    sources = [each.source.lower() for each in maps]
    acts = any(each.clauses.active or each.clauses.exception_target for each in maps)
    if not acts and len(set(sources)) == len(sources):
        return None
    environment.database()  # queried now, while no transaction is in progress
    if environment.queries is not None:
        environment.queries.apply_pending = flush
    resolver = Resolver()
    rows = RowMapping(map_rules(maps), mapper, environment, flush, resolver)
    environment.count = _with_conflicts(environment.count, resolver)
    responses.resolver = resolver
    responses.exceptions = RefusedRows(rows, environment)
    return Stage(rows.programs, RaisedErrors(rows, environment, responses, discard))


def _with_conflicts(count: Count, resolver: Resolver) -> Count:
    """Add the counts of conflicts to the counts of the process."""

    def counted(table: str, statistic: str) -> int | None:
        return resolver.counts.of(table, statistic) if statistic.startswith("CDR_") else count(table, statistic)

    return counted


class LeftTruncates:
    """Reports TRUNCATE records that are not applied; ``report`` receives one sentence per table."""

    def __init__(self, mapper: Mapper, report: Callable[[str], None], *, applies: bool) -> None:
        """``applies``: whether GETTRUNCATES is in effect."""
        self._mapper = mapper
        self._report = report
        self._applies = applies
        self._seen: set[TableDefinition] = set()

    def check(self, batch: ChangeBatch) -> None:
        """Report the tables of a batch whose TRUNCATE is not applied; a batch without TRUNCATE costs one comparison."""
        truncates = batch.of_types(TRUNCATES)
        if not truncates.any():
            return
        for number in sorted({int(number) for number in batch.table[truncates]}):
            table = batch.tables[number]
            if table not in self._seen:
                self._seen.add(table)
                text = self._reason(table)
                if text:
                    self._report(text)

    def _reason(self, table: TableDefinition) -> str:
        """Return why a TRUNCATE of a table is not applied; empty if it is applied or if the table is not replicated."""
        rules = self._mapper.rules_of(table)
        mapped, applies = bool(rules), self._applies and not all(rule.ignored >= TRUNCATES for rule in rules)
        if mapped and not applies:
            return (
                f"TRUNCATE of {table.name} is not applied: IGNORETRUNCATES is in effect. To apply it, use GETTRUNCATES."
            )
        if mapped or not self._applies or not self._mapper.maps_beside(table.name):
            return ""
        return (
            f"TRUNCATE of {table.name} is not applied: no MAP includes the table. If a single partition is truncated,"
            f" the trail contains its own name: use MAP {table.name} or MAPEXCLUDE {table.name}."
        )
