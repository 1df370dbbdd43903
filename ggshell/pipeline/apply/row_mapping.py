"""Compile the row clauses of MAP for the stage between trail and delivery.

A table whose MAP has no clauses passes through unchanged. For every other table the stage builds a derived table (several,
if several MAP statements name it): the source's columns, followed by the columns that COLMAP computes. The mapping leaves
out the source columns that the target does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ggshell.errors import ApplyError, StatementError
from ggshell.language.expressions import ColumnReference, Expression
from ggshell.pipeline.apply.column_groups import compared_columns
from ggshell.pipeline.apply.conflicts import Resolver
from ggshell.pipeline.apply.error_rules import ErrorRules
from ggshell.pipeline.apply.mapping import Mapper, MapRule, require_fit, same_columns, takes
from ggshell.pipeline.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.pipeline.transform.clauses import Clauses, Conversion
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.conditions import Conditions
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.images import Appended
from ggshell.pipeline.transform.program import Program, conversions_of
from ggshell.pipeline.transform.queries import Queries
from ggshell.pipeline.transform.stage import Programs
from ggshell.pipeline.transform.targets import length_of, plan_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.families import family
from ggshell.record.sequences import is_sequence

_HERE = (0, 0)


class RowMapping:
    """Builds the programs of source tables; ``apply_pending`` waits for all pending answers before the target is queried."""

    def __init__(
        self,
        rules: Sequence[MapRule],
        mapper: Mapper,
        environment: Environment,
        apply_pending: Callable[[], None],
        resolver: Resolver | None = None,
    ) -> None:
        self._resolver = resolver
        self._exception_rules = [rule for rule in rules if rule.clauses.exceptions]
        self._mapper = mapper
        self._environment = environment
        self._apply_pending = apply_pending
        self._sources: dict[TableDefinition, TableDefinition] = {}
        self._exceptions: dict[TableDefinition, Sequence[Program]] = {}
        self._mappings: dict[TableDefinition, TableMapping] = {}

    def programs(self, source: TableDefinition) -> Programs:
        """Return the programs for a source table's rows. Raises ApplyError, StatementError."""
        if is_sequence(source):
            return None
        rules = self._mapper.rules_of(source)
        plain = len(rules) == 1 and not rules[0].clauses.active
        if self._mapper.may_skip:
            self._apply_pending()
            rules = [rule for rule in rules if not self._mapper.skips(source, rule)]
        if not rules:
            return None
        exceptions = self._exceptions_of(source, rules[0])
        if exceptions:
            # The target can be queried now, while nothing is pending, but not when a row is refused.
            self._apply_pending()
            self._exceptions[source] = [
                self._program(source, rule, -number) for number, rule in enumerate(exceptions, 1)
            ]
        if plain:
            return None
        self._apply_pending()
        return [self._program(source, rule, number) for number, rule in enumerate(rules)]

    def exceptions(self, source: TableDefinition) -> Programs:
        """Return the programs that build the exceptions rows for a source table's refused rows."""
        return self._exceptions.get(source)

    def source_of(self, made: TableDefinition) -> TableDefinition:
        """Return the source table of a derived table; the table itself if it is not derived."""
        return self._sources.get(made, made)

    def refusals_of(self, source: TableDefinition) -> ErrorRules | None:
        """Return the REPERROR rules in the MAP that takes a source table."""
        rules = self._mapper.rules_of(source)
        return rules[0].refusals if rules else None

    def mapping_of(self, made: TableDefinition) -> TableMapping | None:
        """Return the mapping of a derived table."""
        return self._mappings.get(made)

    def _exceptions_of(self, source: TableDefinition, taker: MapRule) -> list[MapRule]:
        """Return the MAPs for a table's exceptions: those with EXCEPTIONSONLY, and MAPEXCEPTION of the MAP that takes it."""
        found = [rule for rule in self._exception_rules if takes(rule, source)]
        inner = taker.clauses.exception_target
        if inner is not None:
            found.append(MapRule(taker.source, inner.target, clauses=inner.clauses))
        return found

    def _program(self, source: TableDefinition, rule: MapRule, number: int) -> Program:
        table = self._mapper.target_of(rule, source)
        try:
            program, mapping = program_of(source, rule, table, self._environment)
        except StatementError as error:
            error.where = error.where or rule.clauses.place
            raise
        # To distinguish several tables derived from one, all but the first get a NUL and a number after the name.
        name = source.name if not number else source.name._replace(name=f"{source.name.name}\0{number}")
        made = program.definition._replace(name=name)
        self._mapper.bind(made, mapping)
        if number >= 0:  # exceptions tables have different columns on purpose
            self._mapper.note(mapping, chosen=rule.clauses.column_map is not None)
        if rule.clauses.resolutions and self._resolver is not None:
            self._resolver.add(mapping, dict(rule.clauses.resolutions))
        self._sources[made], self._mappings[made] = source, mapping
        return replace(program, definition=made)


def program_of(
    source: TableDefinition, rule: MapRule, table: TargetTable, environment: Environment
) -> tuple[Program, TableMapping]:
    """Compile one MAP for one source table; return the program and the mapping. Raises ApplyError, StatementError."""
    clauses = rule.clauses
    queries = frozenset(query.name.lower() for query in clauses.queries)
    scope = Scope(source, environment, MAKERS, queries, source.identity if source.key else (), source=clauses.source)
    targets, computed = _targets(scope, clauses, table)
    columns, appended = list(source.columns), []
    for target, tree in computed:
        columns.append(Column(target.name, target.type_name))
        binary = family(target.type_name) == "bytes"
        here = replace(scope, length=length_of(target.type_name), family=family(target.type_name))
        appended.append(Appended(len(targets), here.compile(tree), binary=binary))
        targets.append(target)
    key = _key(source, table, targets, rule)
    names = {column.name for index in key if (column := targets[index]) is not None}
    single = any(unique <= names for unique in table.unique)
    # Only the source's key shows whether an update moved a row: any other key may change in any update.
    definition = TableDefinition(source.name, tuple(columns), key if key == source.key else ())
    program = Program(
        definition=definition,
        conditions=Conditions(clauses, scope),
        queries=Queries(clauses, scope, environment.queries) if clauses.queries else None,
        appended=tuple(appended),
        key=frozenset(key),
        conversions=conversions_of(clauses.conversions),
        ignored=rule.ignored,
        history=Conversion.ALL_RECORDS in clauses.conversions,
    )
    mapping = TableMapping(
        definition, table, tuple(targets), key, single, refusals=rule.refusals, switches=rule.switches
    )
    return program, mapping._replace(
        compared_updates=compared_columns(mapping, clauses.compared, "UPDATE", len(source.columns)),
        compared_deletes=compared_columns(mapping, clauses.compared, "DELETE", len(source.columns)),
    )


def _targets(
    scope: Scope, clauses: Clauses, table: TargetTable
) -> tuple[list[TargetColumn | None], list[tuple[TargetColumn, Expression]]]:
    """Return the target column of each source column, and the expressions for computed columns."""
    source = scope.definition
    if clauses.column_map is None:
        return list(same_columns(source, table)), []
    by_name = {column.name: column for column in table.columns}
    plan = plan_of(scope, clauses, list(by_name), lambda _: None)
    found: list[TargetColumn | None] = [None] * len(source.columns)
    computed = [(by_name[name], tree) for name, tree in plan.computed]
    for index, (first, *others) in plan.plain.items():
        require_fit(source, index, by_name[first], table)
        found[index] = by_name[first]
        again = ColumnReference(source.columns[index].name, True, "", _HERE)
        computed += [(by_name[name], again) for name in others]
    return found, computed


def _key(
    source: TableDefinition, table: TargetTable, targets: Sequence[TargetColumn | None], rule: MapRule
) -> tuple[int, ...]:
    """Return the columns that identify a row.

    In this order: KEYCOLS, the source's key if the target takes it unchanged, the target's key, all columns."""
    places = {target.name: index for index, target in enumerate(targets) if target is not None}
    if rule.keycols:
        return tuple(_place(name.strip('"'), source, places, rule) for name in rule.keycols)
    if source.key and all(targets[index] is not None for index in source.key):
        return source.key
    if table.key and all(name in places for name in table.key):
        return tuple(places[name] for name in table.key)
    if Conversion.ALL_RECORDS in rule.clauses.conversions:
        return ()
    if source.key:
        raise ApplyError(
            f"COLMAP leaves out columns that identify rows of {table.name}",
            code="GGS-00511",
            where=rule.clauses.place,
            hint="map the key's columns, or name others with KEYCOLS",
        )
    return tuple(index for index, target in enumerate(targets) if target is not None)


def _place(name: str, source: TableDefinition, places: dict[str, int], rule: MapRule) -> int:
    """Return the index of a KEYCOLS column: a target column, or else a source column that is mapped to the target."""
    lowered = {target.lower(): index for target, index in places.items()}
    names = [column.name.lower() for column in source.columns]
    if name in places or name.lower() in lowered:
        return places.get(name, lowered.get(name.lower(), 0))
    index = names.index(name.lower()) if name.lower() in names else None
    if index is None or index not in places.values():
        raise ApplyError(
            f"KEYCOLS names {name}, which the target of {source.name} does not get",
            code="GGS-00511",
            where=rule.clauses.place,
            hint="correct MAP",
        )
    return index
