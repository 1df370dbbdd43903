"""MAP rules: map source tables to target tables, column by column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.error_rules import ErrorRules, Switches
from ggshell.pipeline.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.pipeline.apply.unmapped import Noted, not_noted, unmapped
from ggshell.pipeline.transform.clauses import NO_CLAUSES, Clauses
from ggshell.record.definition import TableDefinition
from ggshell.record.families import fits
from ggshell.record.operation import NO_OPERATIONS
from ggshell.record.sequences import is_sequence
from ggshell.types import TableName, split_name

Missing = Callable[[TableName, TableName], None]
"""Called with the source table and the name of a target table that does not exist."""


class MapRule(NamedTuple):
    """One MAP statement.

    ``source`` and ``target``: as typed, both may contain wildcards; ``keycols``: by name; ``ignored``: the operations that
    it leaves out; ``clauses``: its row clauses (``ggshell.pipeline.apply.row_mapping``); ``refusals``: REPERROR;
    ``switches``: HANDLECOLLISIONS and similar, None for those of the file.
    """

    source: str
    target: str
    keycols: tuple[str, ...] = ()
    ignored: frozenset[int] = NO_OPERATIONS
    clauses: Clauses = NO_CLAUSES
    refusals: ErrorRules | None = None
    switches: Switches | None = None


class Mapper:
    """Resolves each source table once, by the first rule that takes it.

    Derived tables of an earlier stage are registered by their definitions (``bind``).
    """

    def __init__(
        self,
        rules: Sequence[MapRule],
        describe: Callable[[TableName], TargetTable | None],
        excludes: Sequence[str] = (),
        noted: Noted = not_noted,
        missing: Missing | None = None,
        sequences: Callable[[TableName], bool] = lambda _: True,
    ) -> None:
        """``noted`` is called with what each mapping leaves out; ``missing``: see ``skips``.

        ``sequences``: whether the target takes the values of a sequence that a MAP takes."""
        self._sequences = sequences
        self._rules = [(rule, _pattern(rule.source)) for rule in rules if not rule.clauses.exceptions]
        self._excludes = [_pattern(text) for text in excludes]
        self._describe = describe
        self._noted = noted
        self._missing = missing
        self._bound: dict[TableDefinition, TableMapping] = {}
        self._known: dict[TableDefinition, TableMapping | None] = {}
        self._ignored: dict[TableName, frozenset[int]] = {}

    @property
    def rules(self) -> list[MapRule]:
        """The rules, without those for exceptions tables."""
        return [rule for rule, _ in self._rules]

    def knows(self, source: TableDefinition) -> bool:
        """Whether the table is already resolved, so that the target need not be queried."""
        return source in self._known

    def resolve(self, source: TableDefinition) -> TableMapping | None:
        """Return the mapping of a source table; None if no MAP takes it.

        Raises ApplyError if the target table or one of its columns does not exist, or a type can never fit.
        """
        if source not in self._known:
            self._known[source] = self._bound.get(source) or self._resolve(source)
        return self._known[source]

    def note(self, mapping: TableMapping, *, chosen: bool = False) -> None:
        """Report what a mapping leaves out; ``chosen``: the MAP names the columns."""
        for text in unmapped(mapping, chosen=chosen):
            self._noted(mapping, text)

    def bind(self, made: TableDefinition, mapping: TableMapping) -> None:
        """Register the mapping of a derived table; ``forget`` does not remove it."""
        self._bound[made] = self._known[made] = mapping

    def rules_of(self, source: TableDefinition) -> list[MapRule]:
        """Return the rules for a source table: the first that takes it, then all later ones that name it without wildcards.

        A target gets the rows of a source once: if several rules have the same source and target, the first applies.
        """
        text = f"{source.name.owner}\0{source.name.name}"
        if any(pattern.fullmatch(text) for pattern in self._excludes):
            return []
        found = [rule for rule, pattern in self._rules if pattern.fullmatch(text)]
        found[1:] = [rule for rule in found[1:] if not set("*?") & set(rule.source)]
        targets = {target_name(rule.target, source.name): rule for rule in reversed(found)}
        return [rule for rule in found if targets[target_name(rule.target, source.name)] is rule]

    def maps_beside(self, name: TableName) -> bool:
        """Whether a rule takes tables of this table's schema and no exclusion takes this table."""
        if any(pattern.fullmatch(f"{name.owner}\0{name.name}") for pattern in self._excludes):
            return False
        owners = (split_name(rule.source)[-2] for rule, _ in self._rules)
        return any(re.fullmatch(_part(owner), name.owner, re.DOTALL) for owner in owners)

    def ignored(self, source: TableDefinition) -> frozenset[int]:
        """Return the operations that a source table's rule leaves out; none for a derived table."""
        if source in self._bound:
            return NO_OPERATIONS
        found = self._ignored.get(source.name)
        if found is None:
            text = f"{source.name.owner}\0{source.name.name}"
            found = next((rule.ignored for rule, pattern in self._rules if pattern.fullmatch(text)), NO_OPERATIONS)
            self._ignored[source.name] = found
        return found

    @property
    def may_skip(self) -> bool:
        """Whether IGNOREMISSINGOBJECTS is in effect."""
        return self._missing is not None

    def skips(self, source: TableDefinition, rule: MapRule) -> bool:
        """Whether a table's rows are skipped, because the target table does not exist (IGNOREMISSINGOBJECTS)."""
        if self._missing is None:
            return False
        name = target_name(rule.target, source.name)
        if self._describe(name) is not None:
            return False
        self._missing(source.name, name)
        return True

    def forget(self) -> None:
        """Forget the resolved mappings, so that the target tables are looked up again: they may have changed."""
        self._known.clear()

    def _resolve(self, source: TableDefinition) -> TableMapping | None:
        rules = self.rules_of(source)
        if rules and is_sequence(source) and not self._sequences(source.name):
            return None
        return self._by_rule(source, rules[0]) if rules and not self.skips(source, rules[0]) else None

    def _by_rule(self, source: TableDefinition, rule: MapRule) -> TableMapping:
        table = self.target_of(rule, source)
        if is_sequence(source):
            return TableMapping(source, table, (None,) * len(source.columns), (), False, refusals=rule.refusals)
        columns = same_columns(source, table)
        key = _key(source, table, columns, rule)
        names = {column.name for index in key if (column := columns[index]) is not None}
        single = any(unique <= names for unique in table.unique)
        mapping = TableMapping(source, table, columns, key, single, refusals=rule.refusals, switches=rule.switches)
        self.note(mapping)
        return mapping

    def target_of(self, rule: MapRule, source: TableDefinition) -> TargetTable:
        """Return a rule's target table for a source table. Raises ApplyError if it does not exist."""
        name = target_name(rule.target, source.name)
        table = self._describe(name)
        if table is None:
            kind = "sequence" if is_sequence(source) else "table"
            raise ApplyError(
                f"target {kind} {name} does not exist (MAP {rule.source}, TARGET {rule.target})",
                code="OGG-00199",
                hint=f"create it, or exclude the {kind} with MAPEXCLUDE",
            )
        return table


def same_columns(source: TableDefinition, table: TargetTable) -> tuple[TargetColumn, ...]:
    """Return the target column of each source column by name. Raises ApplyError if one is missing or cannot fit."""
    return tuple(_column(source, index, table) for index in range(len(source.columns)))


def takes(rule: MapRule, source: TableDefinition) -> bool:
    """Whether a rule's source matches a table, by name or by wildcards."""
    return _pattern(rule.source).fullmatch(f"{source.name.owner}\0{source.name.name}") is not None


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a table pattern: wildcards ``*`` and ``?`` in owner and name, which a NUL separates."""
    owner, name = split_name(text)[-2:]
    return re.compile(f"{_part(owner)}\0{_part(name)}", re.DOTALL)


def _part(text: str) -> str:
    return re.escape(text).replace(r"\*", "[^\0]*").replace(r"\?", "[^\0]")


def target_name(text: str, source: TableName) -> TableName:
    """Return the TARGET of a rule for one source table; ``*`` stands for the source's owner or name."""
    owner, name = split_name(text)[-2:]
    return TableName(owner.replace("*", source.owner), name.replace("*", source.name))


def _column(source: TableDefinition, index: int, table: TargetTable) -> TargetColumn:
    """Return the target column of a source column: the same name, or the only name that differs just in case."""
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
    """Raises ApplyError if a target column can never hold a source column's values."""
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
    """Return the key columns: KEYCOLS, else the source's key, else the target's key, else all columns.

    A source table without a key logs the old values of all columns, so the target's key is known too."""
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
