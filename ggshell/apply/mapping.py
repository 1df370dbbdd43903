"""MAP rules: which source table goes to which target table, column by column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.apply.error_rules import ErrorRules
from ggshell.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.columns.clauses import NO_CLAUSES, Clauses
from ggshell.errors import ApplyError
from ggshell.record.definition import TableDefinition
from ggshell.record.families import fits
from ggshell.record.operation import NO_OPERATIONS
from ggshell.types import TableName, split_name


class MapRule(NamedTuple):
    """One MAP statement: ``source`` and ``target`` as typed, both may hold wildcards; ``keycols`` by name; ``ignored``: the
    operations that it leaves out; ``clauses``: what it does to rows (``ggshell.apply.row_mapping``); ``refusals``: REPERROR."""

    source: str
    target: str
    keycols: tuple[str, ...] = ()
    ignored: frozenset[int] = NO_OPERATIONS
    clauses: Clauses = NO_CLAUSES
    refusals: ErrorRules | None = None


class Mapper:
    """Resolves each source table once, by the first rule that takes it.

    Tables that a stage before made of others (``bind``) are known by their definitions.
    """

    def __init__(
        self,
        rules: Sequence[MapRule],
        describe: Callable[[TableName], TargetTable | None],
        excludes: Sequence[str] = (),
    ) -> None:
        self._rules = [(rule, _pattern(rule.source)) for rule in rules if not rule.clauses.exceptions]
        self._excludes = [_pattern(text) for text in excludes]
        self._describe = describe
        self._bound: dict[TableDefinition, TableMapping] = {}
        self._known: dict[TableDefinition, TableMapping | None] = {}

    def knows(self, source: TableDefinition) -> bool:
        """Whether the table was resolved before, so that the target need not be asked."""
        return source in self._known

    def resolve(self, source: TableDefinition) -> TableMapping | None:
        """How a source table is mapped; None when no MAP takes it.

        Raises ApplyError when the target table or one of its columns is missing, or a type cannot fit.
        """
        if source not in self._known:
            self._known[source] = self._bound.get(source) or self._resolve(source)
        return self._known[source]

    def bind(self, made: TableDefinition, mapping: TableMapping) -> None:
        """Say how a table that a stage makes of another one is mapped; it stays so, whatever is forgotten."""
        self._bound[made] = self._known[made] = mapping

    def rules_of(self, source: TableDefinition) -> list[MapRule]:
        """The rules that take a source table: the first one, and behind it those that name it without wildcards.

        A target gets the rows of a source once: of several rules with the same two the first counts.
        """
        text = f"{source.name.owner}\0{source.name.name}"
        if any(pattern.fullmatch(text) for pattern in self._excludes):
            return []
        found = [rule for rule, pattern in self._rules if pattern.fullmatch(text)]
        found[1:] = [rule for rule in found[1:] if not set("*?") & set(rule.source)]
        targets = {target_name(rule.target, source.name): rule for rule in reversed(found)}
        return [rule for rule in found if targets[target_name(rule.target, source.name)] is rule]

    def ignored(self, source: TableDefinition) -> frozenset[int]:
        """The operations that the rule of a source table leaves out; of a table that a stage made none."""
        if source in self._bound:
            return NO_OPERATIONS
        text = f"{source.name.owner}\0{source.name.name}"
        return next((rule.ignored for rule, pattern in self._rules if pattern.fullmatch(text)), NO_OPERATIONS)

    def forget(self) -> None:
        """Look the targets up again: a table may have changed."""
        self._known.clear()

    def _resolve(self, source: TableDefinition) -> TableMapping | None:
        rules = self.rules_of(source)
        return self._by_rule(source, rules[0]) if rules else None

    def _by_rule(self, source: TableDefinition, rule: MapRule) -> TableMapping:
        table = self.target_of(rule, source)
        columns = same_columns(source, table)
        key = _key(source, table, columns, rule)
        names = {column.name for index in key if (column := columns[index]) is not None}
        single = any(unique <= names for unique in table.unique)
        return TableMapping(source, table, columns, key, single, refusals=rule.refusals)

    def target_of(self, rule: MapRule, source: TableDefinition) -> TargetTable:
        """A rule's target table for a source table.  Raises ApplyError when there is none."""
        name = target_name(rule.target, source.name)
        table = self._describe(name)
        if table is None:
            raise ApplyError(
                f"target table {name} does not exist (MAP {rule.source}, TARGET {rule.target})",
                code="OGG-00199",
                hint="create it, or take the table out with MAPEXCLUDE",
            )
        return table


def same_columns(source: TableDefinition, table: TargetTable) -> tuple[TargetColumn, ...]:
    """The target column of each source column, by name.  Raises ApplyError when one is missing or cannot hold it."""
    return tuple(_column(source, index, table) for index in range(len(source.columns)))


def takes(rule: MapRule, source: TableDefinition) -> bool:
    """Whether a rule's source is, or has among its wildcards, a table."""
    return _pattern(rule.source).fullmatch(f"{source.name.owner}\0{source.name.name}") is not None


def _pattern(text: str) -> re.Pattern[str]:
    """Wildcards ``*`` and ``?`` in both parts; a NUL stands between them."""
    owner, name = split_name(text)[-2:]
    parts = [re.escape(part).replace(r"\*", "[^\0]*").replace(r"\?", "[^\0]") for part in (owner, name)]
    return re.compile("\0".join(parts), re.DOTALL)


def target_name(text: str, source: TableName) -> TableName:
    """The TARGET of a rule for one source table: ``*`` stands for the source's own part."""
    owner, name = split_name(text)[-2:]
    return TableName(owner.replace("*", source.owner), name.replace("*", source.name))


def _column(source: TableDefinition, index: int, table: TargetTable) -> TargetColumn:
    """The target column of a source column: the same name, or the only one that differs in case."""
    wanted = source.columns[index]
    found = [column for column in table.columns if column.name == wanted.name]
    found = found or [column for column in table.columns if column.name.lower() == wanted.name.lower()]
    if len(found) != 1:
        raise ApplyError(
            f"target table {table.name} has no column {wanted.name} (source {source.name})",
            code="GGS-00511",
            hint="add the column to the target",
        )
    require_fit(source, index, found[0], table)
    return found[0]


def require_fit(source: TableDefinition, index: int, column: TargetColumn, table: TargetTable) -> None:
    """Raises ApplyError when a target column can never hold a source column's values."""
    wanted = source.columns[index]
    if not fits(wanted.type_name, column.type_name):
        raise ApplyError(
            f"column {column.name} of target table {table.name} is {column.type_name},"
            f" which cannot hold the {wanted.type_name} of {source.name}",
            code="GGS-00512",
            hint="change the column's type on the target",
        )


def _key(
    source: TableDefinition, table: TargetTable, columns: tuple[TargetColumn, ...], rule: MapRule
) -> tuple[int, ...]:
    """KEYCOLS, else the source's key, else (every column is known before a change then) the target's, else the row."""
    if rule.keycols:
        names = [column.name.lower() for column in source.columns]
        unknown = [name for name in rule.keycols if name.lower() not in names]
        if unknown:
            raise ApplyError(
                f"KEYCOLS names {', '.join(unknown)}, which {source.name} does not have",
                code="GGS-00511",
                hint="correct MAP",
            )
        return tuple(names.index(name.lower()) for name in rule.keycols)
    if source.key:
        return source.key
    mine = {column.name: index for index, column in enumerate(columns)}
    if table.key and all(name in mine for name in table.key):
        return tuple(mine[name] for name in table.key)
    return source.identity
