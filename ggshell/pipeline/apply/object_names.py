"""The names that objects of the source have in the target: MAP renames tables, and with them their schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ggshell.pipeline.apply.mapping import Mapper, MapRule, target_name
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, split_name


class NameOptions(NamedTuple):
    """DDLOPTIONS about names.

    ``maps``: MAP renames objects; ``derived``: also indexes, sequences and other objects that are not tables;
    ``session_schemas``: the schemas that are replaced in the search path; ``maps_schemas``: in qualified names as well.
    """

    maps: bool = True
    derived: bool = True
    session_schemas: Mapping[str, str] = MappingProxyType({})
    maps_schemas: bool = False


BY_MAP = NameOptions()


class ObjectNames:
    """Converts names by the MAP rules of a mapper; a name that no rule applies to does not change."""

    def __init__(self, mapper: Mapper, options: NameOptions = BY_MAP) -> None:
        self._mapper = mapper
        self._options = options

    def maps(self, name: TableName) -> bool:
        """Whether a MAP takes a table, or another object of this name."""
        return self._rule(name) is not None

    def table(self, name: TableName) -> TableName:
        """Return the target name of a table, or of another object that may hold rows."""
        rule = self._rule(name) if self._options.maps and name.owner and name.name else None
        return TableName(self.schema(name.owner), name.name) if rule is None else target_name(rule.target, name)

    def other(self, name: TableName) -> TableName:
        """Return the target name of an object that is not a table: its schema may be renamed."""
        return TableName(self.schema(name.owner), name.name) if self._options.derived else name

    def session_schema(self, owner: str) -> str:
        """Return the target name of a schema in the search path."""
        return self._options.session_schemas.get(owner) or self.schema(owner)

    def schema(self, owner: str) -> str:
        """Return the target name of a schema.

        If the rules for its tables have several target schemas, it is that of the rule for all of its tables.
        """
        mapped = self._mapped_schema(owner) if owner and self._options.maps else owner
        if mapped == owner and self._options.maps_schemas:
            return self._options.session_schemas.get(owner, owner)
        return mapped

    def plain_target(self, name: TableName) -> TableName | None:
        """Return the target of a table if one MAP takes it and has no COLMAP; None otherwise."""
        rules = self._mapper.rules_of(TableDefinition(name, (), ()))
        if len(rules) != 1 or rules[0].clauses.column_map is not None:
            return None
        return target_name(rules[0].target, name)

    def _mapped_schema(self, owner: str) -> str:
        found: dict[str, None] = {}
        for rule in self._mapper.rules:
            rule_owner, rule_name = split_name(rule.source)[-2:]
            if _is_like(rule_owner, owner):
                target = target_name(rule.target, TableName(owner, "")).owner
                if rule_name == "*":
                    return target
                found[target] = None
        return next(iter(found)) if len(found) == 1 else owner

    def _rule(self, name: TableName) -> MapRule | None:
        return next(iter(self._mapper.rules_of(TableDefinition(name, (), ()))), None)


def _is_like(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) is not None
