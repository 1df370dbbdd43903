"""The names that objects of the source have in the target: MAP renames tables, and with them their schemas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ggshell.record.ddl import DdlStatement
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, split_name

if TYPE_CHECKING:
    from ggshell.pipeline.apply.mapping import Mapper, MapRule


class ObjectNames:
    """Converts names by the MAP rules of a mapper; a name that no rule concerns stays as it is."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def maps(self, name: TableName) -> bool:
        """Whether a MAP takes a table, or another object of this name."""
        return self._rule(name) is not None

    def maps_object(self, statement: DdlStatement) -> bool | None:
        """Whether a MAP takes the main object of a statement or its table; None if it has no schema or no name."""
        found = (statement.main.table, statement.main.name)
        named = [name for name in found if name is not None and name.owner and name.name]
        return any(map(self.maps, named)) if named else None

    def table(self, name: TableName) -> TableName:
        """Return the target name of a table, or of another object that may hold rows."""
        rule = self._rule(name) if name.owner and name.name else None
        if rule is None:
            return self.other(name)
        return self._mapper.target_name(rule, name)

    def other(self, name: TableName) -> TableName:
        """Return the target name of an object that MAP cannot name: its schema may be renamed."""
        return TableName(self.schema(name.owner), name.name)

    def schema(self, owner: str) -> str:
        """Return the target name of a schema.

        If the rules for its tables have several target schemas, it is that of the rule for all of its tables.
        """
        found: dict[str, None] = {}
        for rule in self._mapper.rules:
            rule_owner, rule_name = split_name(rule.source)[-2:]
            if owner and _is_like(rule_owner, owner):
                target = self._mapper.target_name(rule, TableName(owner, "")).owner
                if rule_name == "*":
                    return target
                found[target] = None
        return next(iter(found)) if len(found) == 1 else owner

    def plain_target(self, name: TableName) -> TableName | None:
        """Return the target of a table if one MAP takes it and has no COLMAP; None otherwise."""
        rules = self._mapper.rules_of(TableDefinition(name, (), ()))
        if len(rules) != 1 or rules[0].clauses.column_map is not None:
            return None
        return self._mapper.target_name(rules[0], name)

    def _rule(self, name: TableName) -> MapRule | None:
        return next(iter(self._mapper.rules_of(TableDefinition(name, (), ()))), None)


def _is_like(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) is not None
