"""Reads the messages that the event triggers of ``ddl_capture_sql`` write to the log: one DDL statement each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ggshell.connectors.postgres.existing_rows_sql import UNCAPTURED, UNSENT
from ggshell.connectors.postgres.sealed_messages import opened
from ggshell.record.ddl import DdlColumn, DdlObject, DdlStatement
from ggshell.record.sql_text import Statement, statement_after, statements, tag_of, tokens
from ggshell.types import TableName, quote, quote_table

DATABASE = "postgres"
_SQL_STATEMENT = re.compile(r'SQL statement "(.*?)"\n(?:PL/|SQL function |SQL statement |extension script )', re.DOTALL)
_SQL_FUNCTION = re.compile(r'SQL function ".*?" statement (\d+)')
_OF_ROWS = ("CREATE TABLE AS", "SELECT INTO")


class TableReport(NamedTuple):
    """A table whose rows are not in the log, and why.

    ``captured``: only those that it had when it was first captured; otherwise, its later changes are not in the log either.
    """

    table: TableName
    reason: str
    captured: bool


class DdlMessages:
    """Converts messages to statements.

    A message of a string with several statements contains the string only if it is the first of its transaction, so the
    string is kept until the transaction has ended.
    """

    def __init__(self, secret: str) -> None:
        """``secret``: the secret of the seal, which the source's owner and its Extracts know."""
        self.secret = secret
        self.made = False
        """Whether the text of the last statement was made from the columns of its table, without anything else."""
        self._strings: dict[int, str] = {}

    def read(self, xid: int, content: bytes) -> DdlStatement | TableReport | None:
        """Return the content of a message in transaction ``xid``; a statement's text is empty if it cannot be determined.

        None for a statement on a temporary object only, of which an earlier release's function writes a message too.

        Raises ValueError if the message was not written by ggshell's function in this transaction.
        """
        found = opened([self.secret], xid, content)
        if "string" in found:
            self._strings[xid] = found["string"]
        if not found["objects"]:
            return None
        for field in (UNSENT, UNCAPTURED):
            if field in found:
                return TableReport(_object(found["objects"][0]).name, str(found[field]), field == UNSENT)
        tag = str(found["tag"])
        text = _text(found, tag, self._strings.get(xid, ""))
        objects = tuple(_object(each) for each in found["objects"])
        self.made = not text and tag == "CREATE TABLE" and bool(found["objects"][0].get("columns"))
        if self.made:
            text = _create_table(found["objects"][0])
        if found.get("partial") and text:
            text = _drop(objects, text)
        if tag in ("GRANT", "REVOKE") and text:
            objects = _granted(objects[0].kind, text) or objects
        settings = tuple((name, value) for name, value in found["settings"].items() if value is not None)
        columns = tuple(DdlColumn(*column[:5]) for column in found["objects"][0].get("columns") or ())
        return DdlStatement(tag, text, objects, DATABASE, settings, str(found["role"]), columns)

    def ended(self, xid: int) -> None:
        """Forget what is kept for a transaction."""
        self._strings.pop(xid, None)


def _text(found: dict[str, Any], tag: str, string: str) -> str:
    if "text" in found:
        return str(found["text"])
    if tag in _OF_ROWS:
        return _create_table(found["objects"][0])
    frames = str(found["frames"])
    inner = _SQL_STATEMENT.match(frames)
    if inner is not None or not frames:
        before = [each for each in str(found["fired"]).split(",") if each]
        chosen = statement_after(inner[1] if inner is not None else string, before, tag)
        return chosen.text if chosen is not None else ""
    function = _SQL_FUNCTION.match(frames)
    if function is None:
        return ""
    numbered = (_numbered(body, int(function[1])) for body in found.get("bodies") or [])
    texts = {each.text for each in numbered if each is not None and tag_of(each) == tag}
    return texts.pop() if len(texts) == 1 else ""


def _numbered(body: str, number: int) -> Statement | None:
    """Return a statement of the body of an SQL function, by its number from 1."""
    parts = statements(body)
    return parts[number - 1] if number <= len(parts) else None


def _create_table(table: dict[str, Any]) -> str:
    """Return a CREATE TABLE with the columns of a table: its rows are in the log, also those of CREATE TABLE AS."""
    columns = [
        f"{quote(name)} {type_name}"
        + (f" COLLATE {collation}" if collation else "")
        + ("" if nullable else " NOT NULL")
        for _, name, type_name, _, nullable, collation in table["columns"] or ()
    ]
    unlogged = "UNLOGGED " if table.get("persistence") == "u" else ""
    return f"CREATE {unlogged}TABLE {quote_table(TableName(table['owner'], table['name']))} ({', '.join(columns)})"


def _drop(objects: Sequence[DdlObject], text: str) -> str:
    """Return a DROP of these objects only: temporary ones, which the text names too, do not exist in a target."""
    names = ", ".join(quote_table(each.name) for each in objects)
    cascade = " CASCADE" if [token.word for token in tokens(text)][-1] == "CASCADE" else ""
    return f"DROP {objects[0].kind} {names}{cascade}"


def _object(found: dict[str, Any]) -> DdlObject:
    kind = "TABLE" if found["kind"] == "TABLE COLUMN" else str(found["kind"])
    table = TableName(*found["table"]) if found.get("table") else None
    name = table if kind == "TABLE" and table is not None else TableName(found["owner"] or "", found["name"] or "")
    return DdlObject(kind, name, table)


def _granted(kind: str, text: str) -> tuple[DdlObject, ...]:
    """Return the objects that GRANT or REVOKE names; the event trigger has only their kind."""
    if kind not in ("TABLE", "SEQUENCE", "SCHEMA"):
        return ()
    found: list[DdlObject] = []
    parts: Sequence[str] = []
    reading = False
    for token in tokens(text):
        if token.word in ("TO", "FROM") and reading:
            break
        if token.word == "ON":
            reading = True
        elif reading and token.word not in ("TABLE", "SEQUENCE", "SCHEMA", "FOREIGN"):
            if token.text == ",":
                found.append(_named(kind, parts))
                parts = []
            elif token.name:
                parts = [*parts, token.name]
    return (*found, _named(kind, parts)) if parts else ()


def _named(kind: str, parts: Sequence[str]) -> DdlObject:
    name = TableName(parts[-2] if len(parts) > 1 else "", parts[-1])
    return DdlObject(kind, name, name if kind == "TABLE" else None)
