"""MAP rules: which source table goes to which target table, column by column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.errors import ApplyError
from ggshell.record import TableDefinition
from ggshell.types import TableName, split_name


class MapRule(NamedTuple):
    """One MAP statement: ``source`` and ``target`` as typed, both may hold wildcards; ``keycols`` by name."""

    source: str
    target: str
    keycols: tuple[str, ...] = ()


class Mapper:
    """Resolves each source table once, by the first rule that takes it."""

    def __init__(
        self,
        rules: Sequence[MapRule],
        describe: Callable[[TableName], TargetTable | None],
        excludes: Sequence[str] = (),
    ) -> None:
        self._rules = [(rule, _pattern(rule.source)) for rule in rules]
        self._excludes = [_pattern(text) for text in excludes]
        self._describe = describe
        self._known: dict[TableDefinition, TableMapping | None] = {}

    def resolve(self, source: TableDefinition) -> TableMapping | None:
        """How a source table is mapped; None when no MAP takes it.

        Raises ApplyError when the target table or one of its columns is missing.
        """
        if source not in self._known:
            self._known[source] = self._resolve(source)
        return self._known[source]

    def forget(self) -> None:
        """Look the targets up again: a table may have changed."""
        self._known.clear()

    def _resolve(self, source: TableDefinition) -> TableMapping | None:
        text = f"{source.name.owner}\0{source.name.name}"
        if any(pattern.fullmatch(text) for pattern in self._excludes):
            return None
        for rule, pattern in self._rules:
            if pattern.fullmatch(text):
                target = target_name(rule.target, source.name)
                table = self._describe(target)
                if table is None:
                    raise ApplyError(
                        f"target table {target} does not exist (MAP {rule.source}, TARGET {rule.target})",
                        code="OGG-00199",
                        hint="create it, or take the table out with MAPEXCLUDE",
                    )
                return _columns(source, table, rule)
        return None


def _pattern(text: str) -> re.Pattern[str]:
    owner, name = split_name(text)[-2:]
    parts = [re.escape(part).replace(r"\*", ".*").replace(r"\?", ".") for part in (owner, name)]
    return re.compile("\0".join(parts), re.DOTALL)


def target_name(text: str, source: TableName) -> TableName:
    """The TARGET of a rule for one source table: ``*`` stands for the source's own part."""
    owner, name = split_name(text)[-2:]
    return TableName(owner.replace("*", source.owner), name.replace("*", source.name))


def _columns(source: TableDefinition, table: TargetTable, rule: MapRule) -> TableMapping:
    exact = {column.name: column for column in table.columns}
    folded = {column.name.lower(): column for column in table.columns}
    found: list[TargetColumn | None] = []
    for column in source.columns:
        match = exact.get(column.name) or folded.get(column.name.lower())
        if match is None:
            raise ApplyError(
                f"target table {table.name} has no column {column.name} (source {source.name})",
                code="OGG-00919",
                hint="add the column to the target",
            )
        found.append(match if match.writable else None)
    names = [column.name.lower() for column in source.columns]
    if rule.keycols:
        unknown = [name for name in rule.keycols if name.lower() not in names]
        if unknown:
            raise ApplyError(f"KEYCOLS names {', '.join(unknown)}, which {source.name} does not have", code="OGG-00919")
        key = tuple(names.index(name.lower()) for name in rule.keycols)
    else:
        key = source.key
    return TableMapping(source, table, tuple(found), key or source.identity)
