"""Which DDL statements a process takes: the rules of the parameter DDL, and the scopes of the objects.

The parts of DDLERROR and DDLSUBST that begin with INCLUDE and EXCLUDE are the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ggshell.record.ddl import DdlStatement
from ggshell.record.ddl_text import DdlText, has_words, split_comments
from ggshell.record.name_patterns import matches
from ggshell.types import TableName

RENAME = "RENAME"
_RENAMES = re.compile(r"\bRENAME\b", re.IGNORECASE)
_LITERALS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


class DdlScope(StrEnum):
    """What TABLE and MAP say about the object of a statement.

    MAPPED: they select it. UNMAPPED: they do not, but they could. OTHER: its kind is never selected, because such an object
    does not belong to a schema (a schema itself, an extension), or the statement has no object.
    """

    MAPPED = "MAPPED"
    UNMAPPED = "UNMAPPED"
    OTHER = "OTHER"


def scope_of(statement: DdlStatement, selects: Callable[[TableName], bool]) -> DdlScope:
    """Return the scope of a statement. ``selects``: whether TABLE or MAP selects a name.

    An object is MAPPED if its name is selected, or if the table to which it belongs is (an index, a trigger).
    """
    names = names_of(statement)
    if not names:
        return DdlScope.OTHER
    return DdlScope.MAPPED if any(map(selects, names)) else DdlScope.UNMAPPED


def names_of(statement: DdlStatement) -> tuple[TableName, ...]:
    """Return the names that TABLE and MAP are compared with: the table of the main object, and the object itself."""
    found = (statement.main.table, statement.main.name)
    named = (name for name in found if name is not None and name.owner and name.name)
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class DdlCondition:
    """One INCLUDE or EXCLUDE of DDL with its options; all that are given must be true.

    ``scope``: None for ALL. ``operation``: OPTYPE, ``object_type``: OBJTYPE, both in upper case; ``object_name``: OBJNAME,
    a pattern of names; ``text``: INSTR; ``words``: INSTRWORDS; ``comment``: INSTRCOMMENTS; ``comment_words``:
    INSTRCOMMENTSWORDS; ``empty_object``, ``empty_owner``: OBJNAME is also true for an object without a name or a schema.
    """

    includes: bool
    scope: DdlScope | None = None
    operation: str = ""
    object_type: str = ""
    object_name: str = ""
    text: str = ""
    words: tuple[str, ...] = ()
    comment: str = ""
    comment_words: tuple[str, ...] = ()
    empty_object: bool = False
    empty_owner: bool = False

    def is_true(self, statement: DdlStatement, text: DdlText, scope: DdlScope, target: TableName | None) -> bool:
        """Whether the condition is true for a statement. ``text``: its text without comments; ``target``: see DdlRules."""
        if self.scope not in (None, scope):
            return False
        if self.operation and not _is_operation(self.operation, statement, text):
            return False
        if self.object_type and not _is_type(self.object_type, statement):
            return False
        if self.object_name and not self._is_name(statement, scope, target):
            return False
        return self._is_text(text)

    def _is_name(self, statement: DdlStatement, scope: DdlScope, target: TableName | None) -> bool:
        if scope is DdlScope.MAPPED and target is not None:
            return matches(self.object_name, target)
        table, own = statement.main.table, statement.main.name
        return any(self._matches(name) for name in (table, own) if name is not None)

    def _matches(self, name: TableName) -> bool:
        if not name.name:
            return self.empty_object and matches(self.object_name, name)
        return bool(name.owner or self.empty_owner) and matches(self.object_name, name)

    def _is_text(self, text: DdlText) -> bool:
        comments = "\n".join(text.comments)
        contained = self.text.lower() in text.command.lower() and self.comment.lower() in comments.lower()
        return contained and has_words(text.command, self.words) and has_words(comments, self.comment_words)


@dataclass(frozen=True, slots=True)
class DdlRules:
    """The conditions of one DDL, DDLERROR or DDLSUBST, in the order of the file; without any, all statements are taken."""

    conditions: tuple[DdlCondition, ...] = ()

    def takes(self, statement: DdlStatement, scope: DdlScope, target: TableName | None = None) -> bool:
        """Whether a statement is taken: an INCLUDE is true for it, and no EXCLUDE.

        ``target``: the name of a MAPPED object in the target. In a Replicat, OBJNAME means this name.
        """
        if not self.conditions:
            return True
        text = split_comments(statement.text)
        true = [each.includes for each in self.conditions if each.is_true(statement, text, scope, target)]
        return bool(true) and all(true)


ALL_DDL = DdlRules()


def _is_operation(operation: str, statement: DdlStatement, text: DdlText) -> bool:
    """Whether a statement is of an operation type. A renaming ALTER is a RENAME too."""
    if operation == RENAME and statement.operation == "ALTER":
        return _RENAMES.search(_LITERALS.sub("''", text.command)) is not None
    return operation == statement.operation


def _is_type(object_type: str, statement: DdlStatement) -> bool:
    """Whether a statement is about an object type, by its main object or its command (ALTER TABLE on a TABLE COLUMN)."""
    return object_type in (statement.object_type.upper(), statement.tag.partition(" ")[2].upper())
