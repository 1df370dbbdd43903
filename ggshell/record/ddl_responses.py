"""What a process does with a DDL statement that fails (DDLERROR), and how it changes a statement's text (DDLSUBST)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from ggshell.record.ddl import DdlStatement
from ggshell.record.ddl_rules import ALL_DDL, DdlRules, DdlScope
from ggshell.record.ddl_text import split_comments
from ggshell.types import TableName


class DdlResponse(StrEnum):
    """The responses of DDLERROR."""

    ABEND = "ABEND"
    DISCARD = "DISCARD"
    IGNORE = "IGNORE"


@dataclass(frozen=True, slots=True)
class DdlAnswer:
    """The answer to a failed statement: it is retried ``retries`` times, ``delay`` seconds apart, then ``response``."""

    response: DdlResponse = DdlResponse.ABEND
    retries: int = 0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class DdlErrorRule:
    """One DDLERROR. ``states``: the SQLSTATEs for which it is; empty for DEFAULT."""

    states: tuple[str, ...]
    answer: DdlAnswer
    rules: DdlRules = ALL_DDL


@dataclass(frozen=True, slots=True)
class DdlErrors:
    """The DDLERROR lines of a file.

    ``ignores_missing``: rows of tables that do not exist in the target are skipped (IGNOREMISSINGOBJECTS).
    ``skips_at_start``: how many statements an Extract skips after its start (RESTARTSKIP).
    """

    rules: tuple[DdlErrorRule, ...] = ()
    ignores_missing: bool = False
    skips_at_start: int = 0

    def answer(
        self, state: str, statement: DdlStatement, scope: DdlScope, target: TableName | None = None
    ) -> DdlAnswer:
        """Return the answer to an SQLSTATE.

        The first line for this SQLSTATE whose INCLUDE and EXCLUDE take the statement decides, then the first such DEFAULT.
        Without any the answer is ABEND. ``target``: see DdlRules.
        """
        return self.given(state, statement, scope, target) or DdlAnswer()

    def given(
        self, state: str, statement: DdlStatement, scope: DdlScope, target: TableName | None = None
    ) -> DdlAnswer | None:
        """As ``answer``; None if no line is for the error. An Extract has no SQLSTATE (""), so only DEFAULT applies."""
        own = [rule for rule in self.rules if state in rule.states]
        default = [rule for rule in self.rules if not rule.states]
        return next((rule.answer for rule in (*own, *default) if rule.rules.takes(statement, scope, target)), None)


@dataclass(frozen=True, slots=True)
class DdlSubstitution:
    """One DDLSUBST: a text, found in any case, and its replacement."""

    search: str
    replacement: str
    rules: DdlRules = ALL_DDL


class Comments(StrEnum):
    """When comments are removed from a statement (REMOVECOMMENTS)."""

    KEEP = ""
    BEFORE = "BEFORE"
    AFTER = "AFTER"


@dataclass(frozen=True, slots=True)
class DdlSubstitutions:
    """The DDLSUBST lines of a file in their order, and when comments are removed: before or after them."""

    rules: tuple[DdlSubstitution, ...] = ()
    comments: Comments = Comments.KEEP

    def of(self, statement: DdlStatement, scope: DdlScope, target: TableName | None = None) -> DdlStatement:
        """Return the statement with its final text. The conditions of each line see the statement as it was."""
        text = statement.text
        if self.comments is Comments.BEFORE:
            text = split_comments(text).command
        for rule in self.rules:
            if rule.rules.takes(statement, scope, target):
                text = _replaced(text, rule)
        if self.comments is Comments.AFTER:
            text = split_comments(text).command
        return statement if text == statement.text else replace(statement, text=text)


def _replaced(text: str, rule: DdlSubstitution) -> str:
    return re.sub(re.escape(rule.search), lambda _: rule.replacement, text, flags=re.IGNORECASE)
