"""MAP's clauses for rows: what the stage between trail and delivery does for each source table, and where its rows go.

A table whose MAP has no clauses goes through untouched.  Of every other one the stage makes a table of its own (more than one,
where several MAPs name it): the source's columns, of which the mapping leaves out what the target does not take, and behind
them what COLMAP computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ggshell.apply.conflicts import Resolver, compared_columns
from ggshell.apply.error_rules import ErrorRules
from ggshell.apply.mapping import Mapper, MapRule, require_fit, same_columns, takes
from ggshell.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.columns.clauses import Clauses, Conversion
from ggshell.columns.conditions import Conditions
from ggshell.columns.environment import Environment
from ggshell.columns.images import Appended
from ggshell.columns.program import Program, conversions_of
from ggshell.columns.queries import Queries
from ggshell.columns.scope import Scope
from ggshell.columns.stage import Programs
from ggshell.columns.targets import length_of, plan_of
from ggshell.errors import ApplyError, StatementError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.families import family
from ggshell.syntax import expression_tree as trees

_HERE = (0, 0)


class RowMapping:
    """Makes the programs of source tables.  ``settle``: before the target is asked, everything sent must be answered."""

    def __init__(
        self,
        rules: Sequence[MapRule],
        mapper: Mapper,
        environment: Environment,
        settle: Callable[[], None],
        resolver: Resolver | None = None,
    ) -> None:
        self._resolver = resolver
        self._exception_rules = [rule for rule in rules if rule.clauses.exceptions]
        self._mapper = mapper
        self._environment = environment
        self._settle = settle
        self._sources: dict[TableDefinition, TableDefinition] = {}
        self._exceptions: dict[TableDefinition, Sequence[Program]] = {}
        self._mappings: dict[TableDefinition, TableMapping] = {}

    def programs(self, source: TableDefinition) -> Programs:
        """What becomes of a source table's rows.  Raises ApplyError, StatementError."""
        rules = self._mapper.rules_of(source)
        told = self._exceptions_of(source, rules[0]) if rules else []
        if told:
            # While nothing is on its way the target can be asked; when a row is refused it cannot.
            self._settle()
            self._exceptions[source] = [self._program(source, rule, -number) for number, rule in enumerate(told, 1)]
        if not rules or (len(rules) == 1 and not rules[0].clauses.active):
            return None
        self._settle()
        return [self._program(source, rule, number) for number, rule in enumerate(rules)]

    def exceptions(self, source: TableDefinition) -> Programs:
        """What tells of a source table's refused rows."""
        return self._exceptions.get(source)

    def source_of(self, made: TableDefinition) -> TableDefinition:
        """The source table that one was made of: itself where it was left as it is."""
        return self._sources.get(made, made)

    def refusals_of(self, source: TableDefinition) -> ErrorRules | None:
        """REPERROR within the MAP that takes a source table."""
        rules = self._mapper.rules_of(source)
        return rules[0].refusals if rules else None

    def mapping_of(self, made: TableDefinition) -> TableMapping | None:
        """How a table that was made is applied."""
        return self._mappings.get(made)

    def _exceptions_of(self, source: TableDefinition, taker: MapRule) -> list[MapRule]:
        """The MAPs of a table's exceptions: those with EXCEPTIONSONLY, and MAPEXCEPTION of the one that takes it."""
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
        # Several tables made of one must be told apart: a NUL and a number stand behind the name of all but the first.
        name = source.name if not number else source.name._replace(name=f"{source.name.name}\0{number}")
        made = program.definition._replace(name=name)
        self._mapper.bind(made, mapping)
        if rule.clauses.resolutions and self._resolver is not None:
            self._resolver.add(mapping, dict(rule.clauses.resolutions))
        self._sources[made], self._mappings[made] = source, mapping
        return replace(program, definition=made)


def program_of(
    source: TableDefinition, rule: MapRule, table: TargetTable, environment: Environment
) -> tuple[Program, TableMapping]:
    """One MAP for one source table, compiled, and how its rows are applied.  Raises ApplyError, StatementError."""
    clauses = rule.clauses
    queries = frozenset(query.name.lower() for query in clauses.queries)
    scope = Scope(source, environment, queries, source.identity if source.key else (), source=clauses.source)
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
    # The source's key alone tells whether an update moved a row: another one may change in any.
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
    mapping = TableMapping(definition, table, tuple(targets), key, single, refusals=rule.refusals)
    return program, mapping._replace(
        compared_updates=compared_columns(mapping, clauses.compared, "UPDATE"),
        compared_deletes=compared_columns(mapping, clauses.compared, "DELETE"),
    )


def _targets(
    scope: Scope, clauses: Clauses, table: TargetTable
) -> tuple[list[TargetColumn | None], list[tuple[TargetColumn, trees.Expression]]]:
    """The target column of each source column, and what is computed for others."""
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
        again = trees.Column(source.columns[index].name, True, "", _HERE)
        computed += [(by_name[name], again) for name in others]
    return found, computed


def _key(
    source: TableDefinition, table: TargetTable, targets: Sequence[TargetColumn | None], rule: MapRule
) -> tuple[int, ...]:
    """What finds a row: KEYCOLS, the source's key where the target takes it as it is, the target's key, every column."""
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
            f"COLMAP leaves out what finds rows of {table.name}",
            code="GGS-00511",
            where=rule.clauses.place,
            hint="map the key's columns, or name others with KEYCOLS",
        )
    return tuple(index for index, target in enumerate(targets) if target is not None)


def _place(name: str, source: TableDefinition, places: dict[str, int], rule: MapRule) -> int:
    """Where a column of KEYCOLS stands: a column of the target, else one of the source that goes there."""
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
