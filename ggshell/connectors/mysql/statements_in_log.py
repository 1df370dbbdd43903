"""Statements in the binary log: which of them end a transaction, which truncate a table, and which are logged instead
of row events."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from ggshell.connectors.mysql.ddl_text import fills_table
from ggshell.types import TableName

_COMMENTS = re.compile(r"/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|(?:--[ \t]|#)[^\n]*", re.DOTALL)
"""Comments, and the signs around the content of those that the server executes."""
_NAME = r"(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[^\s.`\";]+)"
_TRUNCATE = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?(?:({_NAME})\s*\.\s*)?({_NAME})", re.IGNORECASE)
_XA = re.compile(
    r"XA\s+(START|BEGIN|END|PREPARE|COMMIT|ROLLBACK)\b\s*(.*?)\s*(?:ONE\s+PHASE)?\s*;?$", re.IGNORECASE | re.DOTALL
)
_ROWS_FOLLOW = re.compile(r"(CREATE\s+TABLE\b.*\S)\s+START\s+TRANSACTION\s*", re.DOTALL)
_ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "SELECT", "DO", "CALL"})
"""SELECT, DO and CALL are logged only for routines that change rows."""
_ANALYZE = re.compile(
    r"ANALYZE\s+(?:FORMAT\s*=\s*\w+\s+)?(?=(?:INSERT|UPDATE|DELETE|REPLACE|WITH|SELECT)\b)", re.IGNORECASE
)
"""What precedes a statement that is executed and explained."""


class StatementKind(Enum):
    """What a statement of the log means for capture. OTHER: DDL and what changes no rows of tables."""

    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    ROLLBACK_PART = auto()
    SAVEPOINT = auto()
    TRUNCATE = auto()
    ROWS = auto()
    XA_COMMIT = auto()
    XA_ROLLBACK = auto()
    XA_OTHER = auto()
    OTHER = auto()


class LoggedStatement(NamedTuple):
    """A statement. ``table``: of TRUNCATE; ``xa``: the name of the XA transaction."""

    kind: StatementKind
    table: TableName | None = None
    xa: str = ""


_FIRST_WORDS: Final = {
    "BEGIN": StatementKind.BEGIN,
    "START": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "SAVEPOINT": StatementKind.SAVEPOINT,
    "RELEASE": StatementKind.SAVEPOINT,
}
_XA_KINDS: Final = {"COMMIT": StatementKind.XA_COMMIT, "ROLLBACK": StatementKind.XA_ROLLBACK}


def without_start(text: str) -> str:
    """Remove what MySQL adds to CREATE TABLE … SELECT: the rows follow in the same transaction, which does not end here."""
    found = _ROWS_FOLLOW.fullmatch(text)
    return text if found is None else found[1]


def read_statement(text: str, database: str, sql_mode: int = 0) -> LoggedStatement:
    """Return what a statement of the log is. ``database``: the one in which it ran."""
    plain = _ANALYZE.sub("", _COMMENTS.sub(" ", text).strip(), count=1)
    words = plain[:200].upper().split(None, 2)
    first = words[0].rstrip(";") if words else ""
    if first in _FIRST_WORDS:
        return LoggedStatement(_FIRST_WORDS[first])
    if first == "ROLLBACK":
        part = len(words) > 1 and words[1] == "TO"
        return LoggedStatement(StatementKind.ROLLBACK_PART if part else StatementKind.ROLLBACK)
    if first == "XA":
        match = _XA.match(plain)
        kind = _XA_KINDS.get(match[1].upper(), StatementKind.XA_OTHER) if match else StatementKind.XA_OTHER
        return LoggedStatement(kind, xa="".join(match[2].split()) if match else "")
    if first == "TRUNCATE":
        match = _TRUNCATE.match(plain)
        if match is not None:
            return LoggedStatement(
                StatementKind.TRUNCATE, TableName(_plain(match[1]) if match[1] else database, _plain(match[2]))
            )
    rows = first in _ROWS or (first == "CREATE" and fills_table(text, sql_mode))
    return LoggedStatement(StatementKind.ROWS if rows else StatementKind.OTHER)


def _plain(name: str) -> str:
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in '`"' else name
